"""Calls that a running call makes itself, on the same path as a model's (PIP-118, SCR-081 to 084).

What a script calls passes the same admission, the same gate and the same effects; only its result
goes to the script instead of the model, and there is nobody who could be asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from services.common.toolhost.contract import Effect
from services.common.toolhost.nested import NestedCall
from services.orchestrator.agents.profile import Agent
from services.orchestrator.calls.admission import Admission, Admissions, Admitted
from services.orchestrator.calls.arguments import digest
from services.orchestrator.calls.budget import NestedBudget
from services.orchestrator.calls.contract import CallOutcome, CallSink, InnerStart, Scope, UnknownOutcome
from services.orchestrator.calls.effect import Effects
from services.orchestrator.calls.toolbox import Toolbox
from services.orchestrator.store.records import Conversation, GateVerdict, StoredCall


class NoSuchCall(LookupError):
    """The call is not running, or not any more: its inner calls ended with it."""


class InnerCalls:
    """What one running call may do through the orchestrator; an error once that call has ended.

    Args:
        scope: Of the running call.
        parent: The running call.
        sink: Told of every inner call.
        admissions: The checks before an effect.
        effects: Where effects take place.
    """

    def __init__(
        self, scope: Scope, parent: StoredCall, sink: CallSink, admissions: Admissions, effects: Effects
    ) -> None:
        self.attended = scope.attended
        # The turn was taken over, and this call runs again.
        self.taken_over = scope.recovered
        self._scope = replace(
            scope, decisions={}, recovered=False, parent_call_id=parent.id, whole_results=True
        )
        self._parent = parent
        self._sink = sink
        self._admissions = admissions
        self._effects = effects
        self._open = True

    @property
    def agent(self) -> Agent:
        """For whom the call runs, as the turn began with it (SCR-017)."""
        return self._scope.agent

    @property
    def toolbox(self) -> Toolbox:
        """The tools that were declared to the model with the call."""
        return self._scope.toolbox

    @property
    def budget(self) -> NestedBudget | None:
        """Room for inner calls; None outside a turn (SCR-109)."""
        return self._scope.nested_budget

    async def conversation(self) -> Conversation:
        """The conversation as it is now."""
        self._check()
        reread = self._scope.reread
        return await reread() if reread is not None else self._scope.conversation

    async def admit(self, calls: Sequence[StoredCall]) -> list[Admission]:
        """Take inner calls of one line as far as they go without effects, in the order written.

        The conversation is read once for all of them. `Asking` is not put to anybody.
        """
        self._check()
        conversation = await self.conversation()

        async def as_read() -> Conversation:
            return conversation

        scope = replace(self._scope, reread=as_read)
        return [await self._admissions.admit(scope, call) for call in calls]

    async def judge_again(self, admitted: Admitted) -> Admission:
        """The verdict on an admitted call as things are now (SCR-092)."""
        self._check()
        return await self._admissions.judge_again(self._scope, admitted)

    async def begin(self, admitted: Sequence[Admitted]) -> None:
        """Put on record why these calls may run; each then goes through `run` (I1)."""
        self._check()
        await self._sink.inner_starting(
            [
                InnerStart(
                    each.call,
                    each.fitted.json,
                    each.verdict,
                    each.rule,
                    each.held.spec.effect,
                    each.reviewed_by,
                )
                for each in admitted
            ]
        )

    async def withheld(self, outcome: CallOutcome) -> None:
        """Put on record that a call was not let through, and why."""
        self._check()
        await self._sink.inner_ended(outcome)

    async def run(self, admitted: Admitted, stop: asyncio.Event) -> CallOutcome:
        """Run a call that has begun to its end or to `stop`; its result is whole."""
        self._check()
        outcome = await self._effects.run(self._scope, admitted, _NothingToSay(), stop)
        if outcome.outcome == "unknown" and outcome.effect != "read":
            # The same call further down the script is one that may have happened (FLD-084).
            known = UnknownOutcome(outcome.call.name, digest(outcome.arguments_json))
            self._scope = replace(self._scope, unknown_outcomes=(*self._scope.unknown_outcomes, known))
        await self._sink.inner_ended(outcome)
        return outcome

    def close(self) -> None:
        """The running call has ended."""
        self._open = False

    def _check(self) -> None:
        if not self._open:
            raise NoSuchCall(self._parent.id)


class InnerDesk:
    """Where a tool finds the `InnerCalls` of the call it runs."""

    def __init__(self, admissions: Admissions, effects: Effects) -> None:
        self._admissions = admissions
        self._effects = effects
        self._open: dict[str, InnerCalls] = {}

    def of(self, call_id: str) -> InnerCalls:
        """What the running call may do.

        Raises:
            NoSuchCall: It does not run.
        """
        try:
            return self._open[call_id]
        except KeyError:
            raise NoSuchCall(call_id) from None

    @contextmanager
    def opened(self, scope: Scope, call: StoredCall, sink: CallSink) -> Iterator[None]:
        """Let `call` make calls of its own for as long as this is entered."""
        inner = self._open[call.id] = InnerCalls(scope, call, sink, self._admissions, self._effects)
        try:
            yield
        finally:
            inner.close()
            del self._open[call.id]


class _NothingToSay:
    """Of an inner call, its beginning is on record already and nobody watches how it goes."""

    async def progress(self, call_id: str, text: str, details: Mapping[str, Any]) -> None:
        """Nobody watches."""

    async def nested(self, call_id: str, index: int, call: NestedCall) -> None:
        """An inner call makes no calls that anybody sees."""

    async def starting(
        self,
        call: StoredCall,
        arguments_json: str,
        allowed_by: GateVerdict,
        rule: str,
        effect: Effect,
        reviewed_by: str,
    ) -> None:
        """See `InnerCalls.begin`."""
