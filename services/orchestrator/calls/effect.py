"""Running one admitted call at its host, to its end or to the turn's stop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import structlog

from services.common.rpc import trace
from services.common.toolhost.contract import ToolResult, text_result
from services.common.toolhost.nested import NestedCall
from services.common.wording import load
from services.orchestrator.calls.admission import Admitted, ceiling_of
from services.orchestrator.calls.closing import close
from services.orchestrator.calls.contract import CallOutcome, EffectSink, Scope, StepKind
from services.orchestrator.calls.hooks import BeforeCall, Hooks
from services.orchestrator.calls.results import ResultMaker
from services.orchestrator.hosts.contract import CANCEL_SECONDS, HostRun

PROGRESS_NOTE = "progress_note"

_log = structlog.get_logger(__name__)


class Effects:
    """Where admitted calls take effect."""

    def __init__(self, results: ResultMaker, hooks: Hooks) -> None:
        self._results = results
        self._hooks = hooks

    async def run(
        self, scope: Scope, admitted: Admitted, sink: EffectSink, stop: asyncio.Event
    ) -> CallOutcome:
        """Run `admitted`; `stop` ends the work at the host and keeps what was captured.

        Every fault of tool or host is a result. What `sink.starting` raises is passed on, and
        nothing ran then.
        """
        call = admitted.call
        # The host's own span is part of this one.
        trace.enter(trace.begun().child())
        if stop.is_set():
            return close(call, scope.cut_off_by(), scope.locale)
        await sink.starting(
            call,
            admitted.fitted.json,
            admitted.verdict,
            admitted.rule,
            admitted.held.spec.effect,
            admitted.reviewed_by,
        )
        began = time.monotonic()
        progress = _Progress(call.id, sink, self._results)
        nested = _Nested(call.id, sink, self._results)
        result, answered = await self._at_host(scope, admitted, progress, nested, stop)
        progress.close()
        cancelled = stop.is_set() and not (answered and _finished(result))
        request = BeforeCall(scope, call, admitted.fitted.arguments)
        result = await self._hooks.apply_after(request, result)
        ms = round((time.monotonic() - began) * 1000)
        outcome = self._results.outcome(
            call,
            result,
            locale=scope.locale,
            ceiling=ceiling_of(scope),
            verdict=admitted.verdict,
            reason=admitted.rule,
            arguments_json=admitted.fitted.json,
            ms=ms,
            spec=admitted.held.spec,
            note=self._note(scope, admitted, result, answered, stopped=stop.is_set()),
            cancelled=cancelled,
            step_kind=_step_kind(call.name),
            host=admitted.held.host.name,
        )
        outcome = replace(outcome, reviewed_by=admitted.reviewed_by)
        if outcome.step_kind == "note":
            outcome = replace(outcome, step_output=str(result.details.get("note", "")))
        return outcome

    async def _at_host(
        self,
        scope: Scope,
        admitted: Admitted,
        progress: _Progress,
        nested: _Nested,
        stop: asyncio.Event,
    ) -> tuple[ToolResult, bool]:
        """The host's result, and whether it gave one: a silent host is left after a stop (PIP-042)."""
        host, spec = admitted.held.host, admitted.held.spec
        run = HostRun(
            context=admitted.context,
            spec=spec,
            arguments=admitted.fitted.arguments,
            progress=progress,
            stop=stop,
            token=admitted.token,
            target_state=admitted.target_state,
            nested=nested,
        )
        work = asyncio.create_task(host.run(run), name=f"call {admitted.call.id}")
        stopped = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                # The host itself gives up on its service in this time; one second more for that.
                await asyncio.wait({work}, timeout=CANCEL_SECONDS + 1)
        finally:
            stopped.cancel()
        words = load("orchestrator")
        if not work.done():
            work.cancel()
            _log.warning("host_unresponsive", host=host.name, tool=spec.name, call_id=admitted.call.id)
            text = words.text(scope.locale, "calls.unresponsive", service=host.name)
            return text_result(text, is_error=True, outcome="unknown", fault="unavailable"), False
        try:
            return work.result(), True
        except (Exception, asyncio.CancelledError) as error:
            _log.error("host_failed", host=host.name, call_id=admitted.call.id, exc_info=error)
            text = words.text(
                scope.locale, "calls.unexpected", kind=type(error).__name__, call_id=admitted.call.id
            )
            return text_result(text, is_error=True, outcome="unknown", fault="crash"), True

    def _note(
        self, scope: Scope, admitted: Admitted, result: ToolResult, answered: bool, *, stopped: bool
    ) -> str:
        """What the system adds to the result."""
        if stopped:
            return self._stop_note(scope, admitted, result, answered)
        if admitted.held.spec.two_phase and result.is_error:
            return load("orchestrator").text(scope.locale, "calls.two_phase.failed")
        return ""

    def _stop_note(self, scope: Scope, admitted: Admitted, result: ToolResult, answered: bool) -> str:
        """What was stopped, and which of three became of it (PIP-136)."""
        if answered and _finished(result):
            state = "done"
        else:
            state = result.outcome if result.outcome == "not_started" else "unknown"
        words = load("orchestrator")
        return words.text(scope.locale, f"calls.stopped.{state}", tool=admitted.held.spec.label)


class _Progress:
    """Passes progress on while the call runs; what comes later is dropped (PIP-040)."""

    def __init__(self, call_id: str, sink: EffectSink, results: ResultMaker) -> None:
        self._call_id = call_id
        self._sink = sink
        self._results = results
        self._open = True

    async def __call__(self, text: str, details: Mapping[str, Any] | None = None) -> None:
        if not self._open:
            return
        shown, shown_details = self._results.progress(text, details or {})
        try:
            await self._sink.progress(self._call_id, shown, shown_details)
        except Exception:
            _log.exception("progress_listener_failed", call_id=self._call_id)

    def close(self) -> None:
        """The call has settled."""
        self._open = False


class _Nested:
    """Tells of the calls of one call, numbered in the order of finishing (TRN-307)."""

    def __init__(self, call_id: str, sink: EffectSink, results: ResultMaker) -> None:
        self._call_id = call_id
        self._sink = sink
        self._results = results
        self._told = 0

    async def __call__(self, call: NestedCall) -> None:
        index, self._told = self._told, self._told + 1
        await self._sink.nested(self._call_id, index, self._results.nested(call))


def _finished(result: ToolResult) -> bool:
    return not result.is_error and result.outcome == "done"


def _step_kind(tool: str) -> StepKind:
    return "note" if tool == PROGRESS_NOTE else "tool"
