"""A tool host behind gRPC."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import grpc
import grpc.aio
import structlog
from crew.v1 import toolhost_pb2 as pb
from crew.v1 import toolhost_pb2_grpc

from services.common.toolhost import exact_json, wire
from services.common.toolhost.contract import (
    Arguments,
    CallContext,
    Fault,
    NoOpinion,
    Routine,
    ToolResult,
    ToolSpec,
    Verdict,
    text_result,
)
from services.common.wording import load
from services.orchestrator.hosts.contract import (
    JUDGE_SECONDS,
    PREPARE_SECONDS,
    Audience,
    CannotJudge,
    CannotPrepare,
    HostRun,
    HostState,
    HostStatus,
    Released,
)
from services.orchestrator.hosts.retrying import FIRST_WAIT, MOST_RETRIES, Failure, failure_of, may_retry
from services.orchestrator.hosts.running import RunFailed, connected_within, noticed_loss, run_once

_log = structlog.get_logger(__name__)

DESCRIBE_SECONDS = 5.0
# A description this old is asked for again.
_FRESH_SECONDS = 5.0
# After a failure with tools known: later when the host is silent, since each try holds up a model call.
_SILENT_SECONDS = 30.0
# How long a connection may take before a host counts as unreachable.
CONNECT_SECONDS = 2.0
# How long a lost host is waited for before a repeatable call is given up (PIP-043).
BACK_SECONDS = 10.0
# And how long its channel may take to notice that it went.
NOTICE_SECONDS = 0.5
_MOST_TOOLS = 500

_RELEASES = {
    "turn": pb.RELEASE_KIND_TURN,
    "conversation": pb.RELEASE_KIND_CONVERSATION,
    "agent": pb.RELEASE_KIND_AGENT,
}


@dataclass(frozen=True, slots=True)
class _Described:
    tools: Sequence[ToolSpec]
    fingerprint: str
    fresh_until: float


class RemoteToolHost:
    """A service that offers tools.

    Args:
        name: As an owner reads it in errors and Connections.
        channel: To the service, with the token of this direction.
        trusted: False for hosts that somebody added: their word counts only towards more care. They
            cannot call a tool harmless, repeatable or overlapping, nor a call routine.
    """

    def __init__(self, name: str, channel: grpc.aio.Channel, *, trusted: bool = True) -> None:
        self._name = name
        self._channel = channel
        self._trusted = trusted
        self._stub = toolhost_pb2_grpc.ToolHostStub(channel)
        self._described: dict[str, _Described] = {}
        self._describing: dict[str, asyncio.Lock] = {}
        self._state = HostState(name, "unknown")

    @property
    def name(self) -> str:
        """As an owner reads it."""
        return self._name

    def state(self) -> HostState:
        """How the host was at the last contact."""
        return self._state

    async def describe(self, audience: Audience) -> Sequence[ToolSpec]:
        """The tools for `audience`; the last known when the host does not answer."""
        settings = exact_json.dumps(audience.settings)
        key = "\0".join((audience.agent_id, audience.locale, audience.mode, settings))
        async with self._describing.setdefault(key, asyncio.Lock()):
            known = self._described.get(key)
            if known is not None and time.monotonic() < known.fresh_until:
                return known.tools
            request = pb.DescribeRequest(
                agent_id=audience.agent_id,
                locale=audience.locale,
                mode=audience.mode,
                settings_json=settings,
            )
            if known is None:
                # The first to ask may come before the connection stands.
                await connected_within(self._channel, CONNECT_SECONDS, asyncio.Event())
            try:
                answer = await self._stub.Describe(request, timeout=DESCRIBE_SECONDS)
            except grpc.aio.AioRpcError as error:
                self._failed(error)
                return self._without_answer(key, known, error)
            if known is None or not answer.fingerprint or answer.fingerprint != known.fingerprint:
                tools = self._specs(answer.tools)
            else:
                tools = known.tools
            self._described[key] = _Described(tools, answer.fingerprint, time.monotonic() + _FRESH_SECONDS)
            self._state = HostState(
                self._name, "ready", wire.isolation_from_wire(answer.isolation), answer.isolation_note
            )
            return tools

    def _without_answer(
        self, key: str, known: _Described | None, error: grpc.aio.AioRpcError
    ) -> Sequence[ToolSpec]:
        """The last known tools, and when to ask again."""
        silent = error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        if known is None or not known.tools:
            # Nothing to go by: the next call asks again, unless that would hold it up too.
            wait = _FRESH_SECONDS if silent else 0.0
            known = _Described((), "", 0.0)
        else:
            wait = _SILENT_SECONDS if silent else _FRESH_SECONDS
        self._described[key] = replace(known, fresh_until=time.monotonic() + wait)
        return known.tools

    def _specs(self, messages: Sequence[pb.ToolSpec]) -> Sequence[ToolSpec]:
        specs = []
        for message in messages[:_MOST_TOOLS]:
            try:
                spec = wire.spec_from_wire(message)
            except wire.MalformedMessage as error:
                _log.warning(
                    "tool_description_unusable", host=self._name, tool=message.name[:80], why=str(error)
                )
                continue
            if not self._trusted:
                spec = replace(
                    spec, requires_approval=True, parallel=False, replay_safe=False, effect="change"
                )
            specs.append(spec)
        return specs

    async def prepare(self, tool: str, arguments: Arguments) -> Arguments:
        """Convert known older shapes.

        Raises:
            CannotPrepare: The host is away or answered with nonsense.
        """
        request = pb.PrepareRequest(tool=tool, arguments_json=exact_json.dumps(arguments))
        try:
            answer = await self._stub.Prepare(request, timeout=PREPARE_SECONDS)
            return wire.arguments_from_wire(answer.arguments_json)
        except (grpc.aio.AioRpcError, wire.MalformedMessage) as error:
            _log.warning("prepare_failed", host=self._name, tool=tool, why=_short(error))
            raise CannotPrepare(tool) from error

    async def judge(self, tool: str, context: CallContext, arguments: Arguments) -> Verdict:
        """What the host thinks of the call.

        Raises:
            CannotJudge: The host is away, silent for `JUDGE_SECONDS` or answered with nonsense.
        """
        request = pb.JudgeRequest(
            context=wire.context_to_wire(context), tool=tool, arguments_json=exact_json.dumps(arguments)
        )
        try:
            answer = await self._stub.Judge(request, timeout=JUDGE_SECONDS)
            verdict = wire.verdict_from_wire(answer)
        except (grpc.aio.AioRpcError, wire.MalformedMessage) as error:
            if isinstance(error, grpc.aio.AioRpcError):
                self._failed(error)
            _log.warning(
                "judge_failed", host=self._name, tool=tool, call_id=context.call_id, why=_short(error)
            )
            raise CannotJudge(tool) from error
        if isinstance(verdict, Routine) and not self._trusted:
            return NoOpinion(target_state=verdict.target_state)
        return verdict

    async def run(self, run: HostRun) -> ToolResult:
        """Run the call; failures of the host are results, after the retries its effect allows.

        All attempts together keep to the tool's deadline (PIP-044). A retry asks nobody (TLS-071).
        """
        ends_at = time.monotonic() + run.spec.deadline_seconds
        attempts = 0
        wait = FIRST_WAIT
        while True:
            attempts += 1
            connected = await connected_within(self._channel, CONNECT_SECONDS, run.stop)
            try:
                result = await run_once(self._stub, run, max(0.001, ends_at - time.monotonic()))
            except RunFailed as error:
                failed = error
                failure = failure_of(error.code, connected=connected)
                self._note(error)
            else:
                self._state = replace(self._state, status="ready", note="")
                return result
            if run.stop.is_set():
                return self._stopped(run)
            if not await self._again(run, failure, attempts, wait, ends_at):
                return self._given_up(run, failed, failure, attempts)
            wait *= 2

    async def _again(
        self, run: HostRun, failure: Failure, attempts: int, wait: float, ends_at: float
    ) -> bool:
        if run.spec.two_phase:
            # Goes back to its preview instead (PIP-091).
            return False
        left = ends_at - time.monotonic()
        if failure == "lost":
            # Once, when the host is back in time (PIP-043).
            if not run.spec.replay_safe or attempts > 1:
                return False
            await noticed_loss(self._channel, NOTICE_SECONDS)
            return await connected_within(self._channel, min(BACK_SECONDS, left), run.stop)
        if attempts > MOST_RETRIES or wait >= left or not may_retry(failure, run.spec.effect):
            return False
        try:
            async with asyncio.timeout(wait):
                await run.stop.wait()
        except TimeoutError:
            return True
        return False

    def _given_up(self, run: HostRun, error: RunFailed, failure: Failure, attempts: int) -> ToolResult:
        words, locale = load("orchestrator"), run.context.locale
        late = error.code is grpc.StatusCode.DEADLINE_EXCEEDED
        match failure:
            case "refused_before":
                busy = error.code is grpc.StatusCode.RESOURCE_EXHAUSTED
                key, outcome = ("hosts.busy" if busy else "hosts.unreachable"), "not_started"
            case "lost":
                key, outcome = "hosts.lost", "unknown"
            case "server_error" if late:
                key, outcome = "hosts.deadline", "unknown"
            case "server_error" | "other":
                key, outcome = "hosts.failed", "unknown"
        text = words.text(
            locale,
            key,
            service=self._name,
            tool=run.spec.name,
            seconds=run.spec.deadline_seconds,
            code=error.code.name,
        )
        fault: Fault = "timeout" if late else "unavailable"
        if attempts > 1:
            text = f"{text} {words.text(locale, 'hosts.attempts', count=attempts)}"
        return text_result(text, is_error=True, outcome=outcome, fault=fault)

    def _stopped(self, run: HostRun) -> ToolResult:
        text = load("orchestrator").text(run.context.locale, "hosts.cancelled", tool=run.spec.name)
        return text_result(text, is_error=True, outcome="unknown")

    async def release(self, kind: Released, name: str) -> None:
        """Tell the host; a host that is away keeps nothing that matters."""
        try:
            await self._stub.Release(pb.ReleaseRequest(kind=_RELEASES[kind], id=name), timeout=JUDGE_SECONDS)
        except grpc.aio.AioRpcError as error:
            _log.info("release_failed", host=self._name, kind=kind, why=_short(error))

    def _failed(self, error: grpc.aio.AioRpcError) -> None:
        status: HostStatus = (
            "unresponsive" if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED else "unreachable"
        )
        self._state = replace(self._state, status=status, note=error.code().name)

    def _note(self, error: RunFailed) -> None:
        if error.unresponsive:
            self._state = replace(self._state, status="unresponsive", note="CANCEL")
        elif error.code is grpc.StatusCode.UNAVAILABLE:
            self._state = replace(self._state, status="unreachable", note=error.code.name)


def _short(error: Exception) -> str:
    if isinstance(error, grpc.aio.AioRpcError):
        return error.code().name
    return str(error)[:200]
