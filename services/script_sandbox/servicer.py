"""The gRPC face of the service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc.aio
import structlog
from crew.v1 import script_sandbox_pb2 as pb
from crew.v1 import script_sandbox_pb2_grpc

from services.common.errors import Conflict, Invalid
from services.common.wording import locale_of
from services.script_sandbox.bridge.faults import CallerGone
from services.script_sandbox.bridge.inbox import Inbox
from services.script_sandbox.bridge.script_run import ScriptRun
from services.script_sandbox.engine.workers import ENGINE, Workers
from services.script_sandbox.fence.proof import Fence
from services.script_sandbox.limits import Limits

# How long a stream may stay open without saying what to run.
_START_SECONDS = 30.0
# SCR-363, and what one kept answer may hold (SCR-118).
_MOST_INPUTS = 3
_INPUT_BYTES = 6 * 1024 * 1024

Context = grpc.aio.ServicerContext[Any, Any]

_log = structlog.get_logger(__name__)


class ScriptSandboxServicer(script_sandbox_pb2_grpc.ScriptSandboxServicer):
    """Says which fence holds, and runs scripts behind it.

    Args:
        fence: As proven at the start.
        workers: None without a fence.
        limits: Of every script.
    """

    def __init__(self, fence: Fence, workers: Workers | None, limits: Limits) -> None:
        self._fence = fence
        self._workers = workers
        self._limits = limits

    async def Describe(self, request: pb.DescribeSandboxRequest, context: Context) -> pb.SandboxDescription:
        """Which fence holds here, and how busy it is."""
        workers = self._workers
        return pb.SandboxDescription(
            form=self._fence.form or "none",
            note=self._fence.sentence(locale_of(request.locale)),
            warm=workers.warm if workers else 0,
            running=workers.running if workers else 0,
            engine=ENGINE,
        )

    async def Run(
        self, request_iterator: AsyncIterator[pb.ToSandbox], context: Context
    ) -> AsyncIterator[pb.FromSandbox]:
        """Run one script.

        Raises:
            Conflict: No fence could be proven; nothing runs (SCR-253).
            Invalid: The stream does not begin as it has to.
        """
        if self._workers is None:
            raise Conflict("NO_FENCE", "error.script.no_fence")
        inbox = Inbox(request_iterator)
        try:
            start, inputs = await _started(inbox)
            run = ScriptRun(self._workers, self._limits, start, inputs, inbox)
            async for message in run.messages():
                yield message
                _note(message)
        except CallerGone:
            _log.info("script_left")
        finally:
            await inbox.close()


async def _started(inbox: Inbox) -> tuple[pb.ScriptStart, list[str] | None]:
    try:
        first = await inbox.take(_START_SECONDS)
        if first.WhichOneof("message") != "start":
            raise Invalid("NOT_STARTED", "error.script.not_started")
        start = first.start
        if not 0 <= start.input_count <= _MOST_INPUTS:
            raise Invalid("INPUTS", "error.script.inputs", most=_MOST_INPUTS)
        inputs = [await _input(inbox, index) for index in range(start.input_count)]
    except TimeoutError:
        raise Invalid("NOT_STARTED", "error.script.not_started") from None
    return start, inputs or None


async def _input(inbox: Inbox, index: int) -> str:
    parts: list[str] = []
    size = 0
    while True:
        message = await inbox.take(_START_SECONDS)
        part = message.input
        size += len(part.text)
        if message.WhichOneof("message") != "input" or part.index != index or size > _INPUT_BYTES:
            raise Invalid("INPUTS", "error.script.inputs", most=_MOST_INPUTS)
        parts.append(part.text)
        if not part.continues:
            return "".join(parts)


def _note(message: pb.FromSandbox) -> None:
    """How a script ended, without a word of it."""
    match message.WhichOneof("message"):
        case "rejected":
            _log.info("script_rejected", line=message.rejected.line)
        case "finished":
            _log.info("script_finished", steps=message.finished.steps, chars=message.finished.printed_chars)
        case "failed":
            _log.info("script_failed", cause=message.failed.cause, line=message.failed.line)
