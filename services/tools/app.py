"""The tools service, put together: which tools it offers and what they stand on."""

from __future__ import annotations

import asyncio
import contextlib
import resource
from collections.abc import Callable

import structlog
from crew.v1 import toolhost_pb2_grpc

from services.common.rpc import RpcServer, Verifier
from services.common.settings import ToolsSettings
from services.common.toolhost.once import CallLedger
from services.common.toolhost.server import ToolHostServicer
from services.common.wording import load
from services.tools.workspace import workspace_tools
from services.tools.workspace.disk.path_queue import PathQueue
from services.tools.workspace.seen import SeenFiles

_GRACE_SECONDS = 2.0
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
        servicer = ToolHostServicer(workspace_tools(seen, PathQueue()), ledger, on_release=(seen.release,))
        toolhost_pb2_grpc.add_ToolHostServicer_to_server(servicer, server.grpc)
        await server.start()
        parts.push_async_callback(server.stop, _GRACE_SECONDS)
        _log.info("serving", listen=settings.tools_listen)
        if ready is not None:
            ready()
        await stop.wait()


def _allow_open_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
