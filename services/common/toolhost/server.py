"""Serving tools over gRPC: the ToolHost servicer of every host written in Python."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Literal, TypeVar, get_args

import grpc.aio
import structlog
from crew.v1 import toolhost_pb2 as pb
from crew.v1 import toolhost_pb2_grpc

from services.common.errors import Invalid, NotFound, Unavailable
from services.common.toolhost import wire
from services.common.toolhost.contract import (
    Isolation,
    NoOpinion,
    Refuse,
    Tool,
    ToolError,
    ToolResult,
    ToolSpec,
    Verdict,
)
from services.common.toolhost.contract import Run as Call
from services.common.toolhost.execution import Execution
from services.common.toolhost.once import CallLedger
from services.common.toolhost.outlet import Outlet
from services.common.wording import Locale, locale_of

JUDGE_SECONDS = 5.0
# How long a stream may stay open without saying what to run.
START_SECONDS = 30.0

T = TypeVar("T")
Released = Literal["turn", "conversation", "agent"]
ReleaseHook = Callable[[Released, str], Awaitable[None]]
Context = grpc.aio.ServicerContext[Any, Any]

_log = structlog.get_logger(__name__)
_RELEASED: dict[int, Released] = {
    pb.RELEASE_KIND_TURN: "turn",
    pb.RELEASE_KIND_CONVERSATION: "conversation",
    pb.RELEASE_KIND_AGENT: "agent",
}


class ToolHostServicer(toolhost_pb2_grpc.ToolHostServicer):
    """Describes, judges and runs a fixed list of tools.

    Args:
        tools: In the order in which they are described.
        ledger: Keeps calls that change something from acting twice.
        isolation: What keeps the host's commands apart from the machine, as proven at the start.
        isolation_note: Says so to the owner, in a language.
        on_release: Told when a turn, conversation or agent is gone.
    """

    def __init__(
        self,
        tools: Sequence[Tool],
        ledger: CallLedger,
        *,
        isolation: Isolation = "none",
        isolation_note: Callable[[Locale], str] = lambda _: "",
        on_release: Sequence[ReleaseHook] = (),
    ) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._specs: dict[tuple[str, Locale], ToolSpec] = {
            (tool.name, locale): tool.spec(locale) for tool in tools for locale in get_args(Locale)
        }
        self._execution = Execution(ledger)
        self._isolation = isolation
        self._isolation_note = isolation_note
        self._on_release = on_release

    async def Describe(self, request: pb.DescribeRequest, context: Context) -> pb.DescribeResponse:
        """The tools of an agent of this mode and these settings, in its language."""
        locale = locale_of(request.locale)
        mode = wire.mode_from_wire(request.mode)
        settings = _understood(lambda: wire.arguments_from_wire(request.settings_json))
        response = pb.DescribeResponse(
            tools=[
                wire.spec_to_wire(self._specs[tool.name, locale])
                for tool in self._tools.values()
                if tool.offered_to(mode, settings)
            ],
            isolation=self._isolation,
            isolation_note=self._isolation_note(locale),
        )
        response.fingerprint = hashlib.sha256(response.SerializeToString(deterministic=True)).hexdigest()
        return response

    async def Prepare(self, request: pb.PrepareRequest, context: Context) -> pb.PrepareResponse:
        """The arguments in the current shape; the same text when there is nothing to convert."""
        tool = self._tool(request.tool)
        given = _understood(lambda: wire.arguments_from_wire(request.arguments_json))
        prepared = tool.prepare(given)
        text = request.arguments_json if prepared == given else wire.arguments_to_wire(prepared)
        return pb.PrepareResponse(arguments_json=text)

    async def Judge(self, request: pb.JudgeRequest, context: Context) -> pb.Verdict:
        """What the tool thinks of the call, within `JUDGE_SECONDS`."""
        tool = self._tool(request.tool)
        call = _understood(lambda: wire.context_from_wire(request.context))
        arguments = _understood(lambda: wire.arguments_from_wire(request.arguments_json))
        try:
            async with asyncio.timeout(JUDGE_SECONDS):
                verdict: Verdict = await tool.judge(call, tool.prepare(arguments))
        except TimeoutError:
            raise Unavailable("JUDGE_LATE", "error.toolhost.judge_late", tool=tool.name) from None
        except ToolError as error:
            verdict = Refuse(error.text) if error.refused else NoOpinion()
        except Exception as error:
            _log.exception("judging failed", tool=tool.name, call_id=call.call_id)
            raise Unavailable(
                "JUDGE_FAILED", "error.toolhost.judge_failed", tool=tool.name, problem=type(error).__name__
            ) from None
        return wire.verdict_to_wire(verdict)

    # Written to the context instead of yielded: a cancelled generator that waits for its reader is
    # not resumed, and the work would outlive its call.
    async def Run(  # type: ignore[override]
        self, request_iterator: AsyncIterator[pb.RunInput], context: Context
    ) -> None:
        """Run one call: its progress as it comes, then its result.

        A caller that goes away, or whose deadline passes, ends the work, and this returns when the
        work has ended (TLS-022).
        """
        start = await _start(request_iterator)
        tool = self._tool(start.tool)
        outlet = Outlet(context.write)
        call = _call(start, tool, outlet)
        spec = self._specs[tool.name, call.context.locale]
        work = self._execution.begin(tool, spec, call, start.arguments_json)
        listening = asyncio.create_task(_cancel_when_asked(request_iterator, work))
        try:
            await asyncio.wait({work})
        except asyncio.CancelledError:
            work.cancel()
            await asyncio.wait({work})
            raise
        finally:
            listening.cancel()
        await outlet.settle()
        result = self._execution.cancelled(spec, call.context) if work.cancelled() else work.result()
        for message in self._messages(result, spec, call):
            await context.write(message)

    async def Release(self, request: pb.ReleaseRequest, context: Context) -> pb.ReleaseResponse:
        """Tell whoever keeps something for it that a turn, conversation or agent is gone."""
        kind = _RELEASED.get(request.kind)
        if kind is None or not request.id:
            raise Invalid("MALFORMED_REQUEST", "error.toolhost.malformed", problem="release")
        for hook in self._on_release:
            await hook(kind, request.id)
        return pb.ReleaseResponse()

    def _tool(self, name: str) -> Tool:
        try:
            return self._tools[name]
        except KeyError:
            raise NotFound("UNKNOWN_TOOL", "error.toolhost.unknown_tool", tool=name[:100]) from None

    def _messages(self, result: ToolResult, spec: ToolSpec, call: Call) -> list[pb.RunOutput]:
        try:
            return list(wire.result_to_wire(result))
        except ValueError:
            _log.exception("a result cannot be sent", tool=spec.name, call_id=call.context.call_id)
            return list(wire.result_to_wire(self._execution.too_large(spec, call.context, result.outcome)))


async def _start(inputs: AsyncIterator[pb.RunInput]) -> pb.RunStart:
    try:
        async with asyncio.timeout(START_SECONDS):
            first = await anext(aiter(inputs), None)
    except TimeoutError:
        first = None
    if first is None or first.WhichOneof("input") != "start":
        raise Invalid("MALFORMED_REQUEST", "error.toolhost.malformed", problem="no start")
    return first.start


def _call(start: pb.RunStart, tool: Tool, outlet: Outlet) -> Call:
    context = _understood(lambda: wire.context_from_wire(start.context))
    arguments = _understood(lambda: wire.arguments_from_wire(start.arguments_json))
    if not context.call_id:
        raise Invalid("NO_CALL_ID", "error.toolhost.no_call_id", tool=tool.name)
    return Call(context, tool.prepare(arguments), outlet.progress, start.token, start.target_state)


async def _cancel_when_asked(inputs: AsyncIterator[pb.RunInput], work: asyncio.Task[ToolResult]) -> None:
    async for message in inputs:
        if message.WhichOneof("input") == "cancel":
            work.cancel()


def _understood(read: Callable[[], T]) -> T:
    try:
        return read()
    except wire.MalformedMessage as error:
        raise Invalid("MALFORMED_REQUEST", "error.toolhost.malformed", problem=str(error)[:200]) from None
