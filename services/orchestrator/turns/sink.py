"""Where the call pipeline says what happens in a turn: events for watchers, steps, the audit trail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson
from crew.v1 import events_pb2, runs_pb2

from services.common.toolhost.contract import Effect
from services.common.toolhost.nested import NestedCall
from services.orchestrator.calls.contract import CallOutcome, InnerStart
from services.orchestrator.calls.steps import step_arguments
from services.orchestrator.store.audit import NewEntry
from services.orchestrator.store.records import GateVerdict, StoredCall
from services.orchestrator.turns.observing import CallObserver
from services.orchestrator.turns.turn import Turn
from services.orchestrator.turns.writes import TurnWrites


class TurnSink:
    """The `CallSink` of one batch."""

    def __init__(self, turn: Turn, writes: TurnWrites, observed: CallObserver) -> None:
        self._turn = turn
        self._writes = writes
        self._observed = observed
        self._inner = writes.inner(turn)

    async def announced(self, call: StoredCall) -> None:
        """Show the call with the arguments as the model wrote them."""
        self._publish(tool_call=events_pb2.ToolCall(id=call.id, name=call.name, arguments=call.arguments))

    async def progress(self, call_id: str, text: str, details: Mapping[str, Any]) -> None:
        """Show how far a running call is."""
        told = orjson.dumps(details).decode()
        self._publish(tool_progress=events_pb2.ToolProgress(id=call_id, text=text, details=told))

    async def nested(self, call_id: str, index: int, call: NestedCall) -> None:
        """Charge a call of a script, keep it on the script's card and show it."""
        step = self._turn.call_steps.get(call_id)
        if step is not None:
            calls = orjson.loads(step.calls) if step.calls else []
            step.calls = orjson.dumps([*calls, orjson.Fragment(call.json())]).decode()
        told = events_pb2.NestedCall(tool_call_id=call_id, index=index, call=call.json())

        def show() -> None:
            if step is not None:
                self._turn.recorder.changed(step)
            self._publish(nested_call=told)

        await self._inner.nested(call_id, call, step, show)

    async def starting(
        self,
        call: StoredCall,
        arguments_json: str,
        allowed_by: GateVerdict,
        rule: str,
        effect: Effect,
        reviewed_by: str,
    ) -> None:
        """Open the call's step and record why it may run.

        Committed before this returns, but for a read that no person was asked about: that is stored
        with its result. A process that dies under it leaves an open call, which the next one makes
        again or closes, with an entry of its own.
        """
        step = self._turn.recorder.open(
            "tool",
            name=call.name,
            arguments=_json(step_arguments(self._writes.trail.mask.text(arguments_json), self._turn.locale)),
            tool_call_id=call.id,
            verdict=allowed_by,
        )
        self._turn.call_steps[call.id] = step
        about = self._writes.trail.call(self._turn, call, arguments_json, effect)
        about = replace(about, reviewed_by=reviewed_by)
        decided_by = rule if allowed_by == "approved" else None
        entry = NewEntry("allowed", about, allowed_by, rule[:500], decided_by)
        if effect == "read" and allowed_by != "approved":
            self._turn.let_through[call.id] = entry
        else:
            await self._writes.starting(self._turn, entry, step)

    async def inner_starting(self, starts: Sequence[InnerStart]) -> None:
        """Record why calls of a running call may run; committed before this returns."""
        await self._inner.starting(starts)

    async def inner_ended(self, outcome: CallOutcome) -> None:
        """Count a call of a running call; its end is on record with what is written next."""
        self._observed(self._turn, outcome)
        self._inner.ended(outcome)

    async def ended(self, outcome: CallOutcome) -> None:
        """Close the step, count the call and show the result."""
        self._close_step(outcome)
        self._observed(self._turn, outcome)
        result = events_pb2.ToolResult(
            id=outcome.call.id,
            name=outcome.call.name,
            ok=outcome.ok,
            output=outcome.step_output,
            ms=outcome.ms or 0,
        )
        if outcome.cost_usd is not None:
            result.cost_usd = outcome.cost_usd
        if outcome.shortened is not None:
            result.shortened = outcome.shortened
        if outcome.original_chars is not None:
            result.original_chars = outcome.original_chars
        if outcome.script is not None:
            result.calls = outcome.script.calls_json()
            result.received_chars = outcome.script.received_chars
            result.printed_chars = outcome.script.printed_chars
        self._publish(tool_result=result)

    async def store(self, outcomes: Sequence[CallOutcome]) -> None:
        """Store the tool messages in the order written."""
        await self._inner.flush()
        steps = [self._step_of(outcome) for outcome in outcomes]
        await self._writes.outcomes(self._turn, outcomes, steps)
        for outcome in outcomes:
            self._turn.call_steps.pop(outcome.call.id, None)
            self._turn.let_through.pop(outcome.call.id, None)

    def _close_step(self, outcome: CallOutcome) -> None:
        turn = self._turn
        step = turn.call_steps.get(outcome.call.id)
        if outcome.step_kind == "note":
            if step is not None:
                turn.recorder.drop(step)
            turn.call_steps[outcome.call.id] = turn.recorder.note("note", text=outcome.step_output)
            return
        if step is None:
            step = turn.recorder.open("tool", name=outcome.call.name, tool_call_id=outcome.call.id)
            turn.call_steps[outcome.call.id] = step
        if outcome.script is not None:
            step.calls = outcome.script.calls_json()
            step.received_chars = outcome.script.received_chars
            step.printed_chars = outcome.script.printed_chars
        turn.recorder.close(
            step,
            ms=outcome.ms or 0,
            arguments=_json(outcome.step_arguments),
            ok=outcome.ok,
            output=outcome.step_output,
            verdict=outcome.verdict,
            text=outcome.reason or None,
            cost_usd=outcome.cost_usd,
            shortened=outcome.shortened,
            original_chars=outcome.original_chars,
        )

    def _step_of(self, outcome: CallOutcome) -> runs_pb2.RunStep:
        if outcome.call.id not in self._turn.call_steps:
            self._close_step(outcome)
        return self._turn.call_steps[outcome.call.id]

    def _publish(self, **event: Any) -> None:
        self._turn.stream.publish(events_pb2.TurnEvent(**event))


def _json(arguments: Mapping[str, str]) -> str:
    return orjson.dumps(dict(arguments)).decode()
