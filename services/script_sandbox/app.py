"""The script sandbox, put together: a proven fence, workers behind it, and their gRPC face."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path

import structlog
from crew.v1 import script_sandbox_pb2_grpc

from services.common.rpc import RpcServer, Verifier
from services.common.settings import ScriptSandboxSettings
from services.common.wording import load
from services.script_sandbox.engine.workers import Workers
from services.script_sandbox.fence.proof import prove_fence
from services.script_sandbox.limits import Limits
from services.script_sandbox.servicer import ScriptSandboxServicer

_GRACE_SECONDS = 2.0
_SERVICE = "crew.v1.ScriptSandbox"

_log = structlog.get_logger(__name__)


async def serve(
    settings: ScriptSandboxSettings, *, ready: Callable[[], None] | None = None, stop: asyncio.Event
) -> None:
    """Serve scripts until `stop` is set, then end what runs and return.

    Args:
        settings: Of this service.
        ready: Called once it answers.
        stop: Ends it.

    Raises:
        StartError: The address is taken or a token is missing.
    """
    server = RpcServer(
        settings.script_sandbox_listen,
        catalogue=load("common", "script_sandbox"),
        verifier=Verifier.read(settings.secrets_dir, "script_sandbox", ("orchestrator",)),
        locale=settings.locale,
        setting="MY_AGENT_SCRIPT_SANDBOX_LISTEN",
    )
    limits = Limits()
    async with contextlib.AsyncExitStack() as parts:
        folder = parts.enter_context(tempfile.TemporaryDirectory(prefix="scripts-", dir=settings.run_dir))
        fence = await prove_fence(Path(folder), limits)
        workers = None
        if fence.launcher is not None:
            workers = await parts.enter_async_context(Workers(fence.launcher, limits))
        servicer = ScriptSandboxServicer(fence, workers, limits)
        script_sandbox_pb2_grpc.add_ScriptSandboxServicer_to_server(servicer, server.grpc)
        await server.start()
        parts.push_async_callback(server.stop, _GRACE_SECONDS)
        await server.report(_SERVICE, workers is not None)
        _log.info("serving", listen=settings.script_sandbox_listen, form=fence.form)
        if ready is not None:
            ready()
        await stop.wait()
