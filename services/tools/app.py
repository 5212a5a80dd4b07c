"""The tools service, put together: which tools it offers and what they stand on."""

from __future__ import annotations

import asyncio
import contextlib
import resource
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import structlog
from crew.v1 import toolhost_pb2_grpc

from services.common.rpc import RpcServer, Verifier
from services.common.settings import ToolsSettings
from services.common.toolhost.contract import Tool
from services.common.toolhost.once import CallLedger
from services.common.toolhost.server import ToolHostServicer
from services.common.wording import load
from services.tools.shell.sandbox.shell_sandbox import ShellSandbox
from services.tools.shell.shell_run import ShellRun
from services.tools.workspace.disk.path_queue import PathQueue
from services.tools.workspace.on_disk import workspace_tools
from services.tools.workspace.seen import SeenFiles

_GRACE_SECONDS = 2.0
_THREADS = 32
# Searches hold some hundred files open.
_OPEN_FILES = 8192

_log = structlog.get_logger(__name__)


async def serve(
    settings: ToolsSettings, *, ready: Callable[[], None] | None = None, stop: asyncio.Event
) -> None:
    """Serve the tools until `stop` is set, then end what runs and return.

    Args:
        settings: Of this service.
        ready: Called once it answers.
        stop: Ends it.

    Raises:
        StartError: The address is taken or a token is missing.
    """
    _allow_open_files()
    # What blocks is waiting for a disk: more threads than processors.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS, thread_name_prefix="disk"))
    server = RpcServer(
        settings.tools_listen,
        catalogue=load("common", "tools"),
        verifier=Verifier.read(settings.secrets_dir, "tools", ("orchestrator",)),
        locale=settings.locale,
        setting="MY_AGENT_TOOLS_LISTEN",
    )
    async with contextlib.AsyncExitStack() as parts:
        ledger = CallLedger(settings.tools_state_dir / "calls.sqlite")
        parts.push_async_callback(ledger.close)
        seen = SeenFiles(settings.tools_state_dir / "seen.sqlite")
        parts.push_async_callback(seen.close)
        sandbox = ShellSandbox(hidden=_own_paths(settings))
        parts.callback(sandbox.close)
        report = await sandbox.probe()
        servicer = ToolHostServicer(
            offered_tools(seen, PathQueue(), sandbox),
            ledger,
            isolation=report.isolation,
            isolation_note=report.sentence,
            on_release=(seen.release,),
        )
        toolhost_pb2_grpc.add_ToolHostServicer_to_server(servicer, server.grpc)
        await server.start()
        parts.push_async_callback(server.stop, _GRACE_SECONDS)
        _log.info("serving", listen=settings.tools_listen)
        if ready is not None:
            ready()
        await stop.wait()


def offered_tools(seen: SeenFiles, queue: PathQueue, sandbox: ShellSandbox) -> Sequence[Tool]:
    """Every tool of this service, in the order in which they are declared.

    Args:
        seen: What conversations know of files.
        queue: Shared by everything that changes workspace files.
        sandbox: Of commands; probed before the first call.
    """
    return (*workspace_tools(seen, queue), ShellRun(sandbox))


def _own_paths(settings: ToolsSettings) -> list[str]:
    """What no command may see of the service itself."""
    own = (settings.secrets_dir, settings.tools_state_dir, settings.run_dir)
    return [str(path) for path in own if path is not None]


def _allow_open_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
