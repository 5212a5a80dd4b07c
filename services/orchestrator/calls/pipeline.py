"""The one path of every tool call (pipeline.md)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import structlog

from services.orchestrator.calls.admission import Admissions, Admitted, Asking, GrantFor
from services.orchestrator.calls.arguments import digest
from services.orchestrator.calls.closing import close
from services.orchestrator.calls.contract import (
    BatchEnd,
    CallOutcome,
    CallSink,
    Completed,
    Paused,
    Scope,
    UnknownOutcome,
)
from services.orchestrator.calls.effect import Effects
from services.orchestrator.calls.hooks import Hooks
from services.orchestrator.calls.inner import InnerDesk
from services.orchestrator.calls.masking import SecretMask
from services.orchestrator.calls.results import ResultMaker
from services.orchestrator.calls.review import ReviewRequest
from services.orchestrator.store.records import StoredCall

# Effects of one batch at the same time (PIP-031).
MOST_AT_ONCE = 8

T = TypeVar("T")

_log = structlog.get_logger(__name__)


class CallPipeline:
    """Takes the calls of one assistant message through all stages.

    Args:
        grant_for: What an agent's calls may touch, asked at each call.
        hooks: Before and after the effect.
        mask: Secret values that must not reach a model or a person.
    """

    def __init__(
        self, *, grant_for: GrantFor, hooks: Hooks | None = None, mask: SecretMask | None = None
    ) -> None:
        results = ResultMaker(mask or SecretMask())
        hooks = hooks or Hooks()
        self._admissions = Admissions(results, hooks, grant_for)
        self._effects = Effects(results, hooks)
        # For tools that make calls of their own.
        self.inner = InnerDesk(self._admissions, self._effects)

    async def run(self, scope: Scope, calls: Sequence[StoredCall], sink: CallSink) -> BatchEnd:
        """Run `calls`, the still open ones of a message, in the order written.

        Returns `Completed` when all have their results stored, `Paused` when a person must decide.
        Called again after the decision with the calls that are still open and the decision in
        `scope.decisions`, which holds only decisions whose effect has not begun.

        Raises:
            asyncio.CancelledError: The turn was stopped; the work at the hosts has ended or was
                reported, and every call has its result stored, unless `scope.leave_open`.
        """
        batch = _Batch(scope, calls, sink, self._admissions, self._effects, self.inner)
        return await (batch.overlapping() if _may_overlap(scope, calls) else batch.one_by_one())

    async def foresee(self, scope: Scope, name: str, arguments: str) -> ReviewRequest | None:
        """The review that a call will need whose arguments have just been streamed (PIP-101)."""
        return await self._admissions.foresee(scope, name, arguments)


def _may_overlap(scope: Scope, calls: Sequence[StoredCall]) -> bool:
    """Whether every call is to a tool that may overlap (PIP-030, 131); unknown names run nothing."""
    if len(calls) < 2 or scope.agent.tool_execution == "sequential":
        return False
    held = [scope.toolbox.find(call.name) for call in calls]
    return all(tool is None or tool.spec.parallel for tool in held)


class _Batch:
    """The life of one batch; used once."""

    def __init__(
        self,
        scope: Scope,
        calls: Sequence[StoredCall],
        sink: CallSink,
        admissions: Admissions,
        effects: Effects,
        inner: InnerDesk,
    ) -> None:
        self._inner = inner
        self._scope = scope
        self._calls = calls
        self._sink = sink
        self._admissions = admissions
        self._effects = effects
        self._stop = asyncio.Event()
        self._slots = asyncio.Semaphore(MOST_AT_ONCE)
        self._done: dict[str, CallOutcome] = {}
        self._stored: set[str] = set()

    async def one_by_one(self) -> BatchEnd:
        """Each call lives its whole life before the next begins (PIP-032)."""
        budget = self._scope.nested_budget
        for call in self._calls:
            if budget is not None and budget.exhausted:
                await self._unbroken(self._close_unrun(call, budget.limit))
                continue
            admission = await self._guarded(self._admit(call))
            match admission:
                case Asking():
                    return Paused(self._outcomes(), call, admission.draft)
                case CallOutcome():
                    await self._unbroken(self._end(admission))
                case Admitted():
                    await self._effects_of([admission])
            await self._unbroken(self._store_ended())
        return self._completed()

    async def overlapping(self) -> BatchEnd:
        """Checks in the order written, then the effects together (PIP-031).

        A call that asks cuts the batch: those before it run, the rest waits (TRN-197).
        """
        admitted: list[Admitted] = []
        asking: Asking | None = None
        for call in self._calls:
            admission = await self._guarded(self._admit(call))
            match admission:
                case Asking():
                    asking = admission
                    break
                case CallOutcome():
                    await self._unbroken(self._end(admission))
                case Admitted():
                    admitted.append(admission)
        await self._effects_of(admitted)
        await self._unbroken(self._store_ended())
        if asking is not None:
            return Paused(self._outcomes(), asking.call, asking.draft)
        return self._completed()

    async def _close_unrun(self, call: StoredCall, limit: int) -> None:
        """Close a call behind a script that used up the turn's nested calls (TRN-111)."""
        await self._announce(call)
        await self._end(close(call, "nested_calls", self._scope.locale, limit=limit))
        await self._store_ended()

    async def _admit(self, call: StoredCall) -> Admitted | Asking | CallOutcome:
        await self._announce(call)
        return await self._admissions.admit(self._scope, call)

    async def _announce(self, call: StoredCall) -> None:
        try:
            await self._sink.announced(call)
        except Exception:
            _log.exception("call_listener_failed", call_id=call.id)

    async def _effects_of(self, admitted: Sequence[Admitted]) -> None:
        """Run effects to their ends; a stop of the turn stops the work and is passed on after it."""
        tasks = [asyncio.create_task(self._effect(each)) for each in admitted]
        if await _whatever_comes(tasks, self._stop.set):
            await self._close_rest()
            raise asyncio.CancelledError
        errors = [error for task in tasks if (error := task.exception()) is not None]
        if errors:
            await self._unbroken(self._store_ended())
            raise errors[0]

    async def _effect(self, admitted: Admitted) -> None:
        async with self._slots:
            with self._inner.opened(self._scope, admitted.call, self._sink):
                outcome = await self._effects.run(self._scope, admitted, self._sink, self._stop)
        if self._stop.is_set() and self._scope.leave_open() and outcome.outcome != "done":
            return
        await self._end(outcome)

    async def _end(self, outcome: CallOutcome) -> None:
        self._done[outcome.call.id] = outcome
        if outcome.outcome == "unknown":
            # The same call further down this very message is one that may have happened (FLD-084).
            known = UnknownOutcome(outcome.call.name, digest(outcome.arguments_json))
            self._scope = replace(self._scope, unknown_outcomes=(*self._scope.unknown_outcomes, known))
        await self._sink.ended(outcome)

    async def _store_ended(self) -> None:
        """Store what has ended and is not stored yet, in the order written (PIP-132)."""
        fresh = [each for each in self._outcomes() if each.call.id not in self._stored]
        if fresh:
            await self._sink.store(fresh)
            self._stored.update(each.call.id for each in fresh)

    async def _guarded(self, step: Coroutine[Any, Any, T]) -> T:
        """`step`; a stop of the turn during it closes what is open before it is passed on."""
        try:
            return await step
        except asyncio.CancelledError:
            await self._close_rest()
            raise

    async def _unbroken(self, step: Coroutine[Any, Any, None]) -> None:
        """`step` to its end, so that nothing is told or stored twice; a stop is passed on after it."""
        task = asyncio.create_task(step)
        if await _whatever_comes([task]):
            await self._close_rest()
            raise asyncio.CancelledError
        task.result()

    async def _close_rest(self) -> None:
        """Give every call that did not run its closing result, and store all results."""

        async def close_all() -> None:
            if not self._scope.leave_open():
                for call in self._calls:
                    if call.id not in self._done:
                        await self._end(close(call, self._scope.cut_off_by(), self._scope.locale))
            await self._store_ended()

        task = asyncio.create_task(close_all())
        await _whatever_comes([task])
        task.result()

    def _outcomes(self) -> list[CallOutcome]:
        return [self._done[call.id] for call in self._calls if call.id in self._done]

    def _completed(self) -> Completed:
        outcomes = self._outcomes()
        return Completed(outcomes, bool(outcomes) and all(each.terminate for each in outcomes))


async def _whatever_comes(
    tasks: Sequence[asyncio.Task[None]], on_cancel: Callable[[], object] = lambda: None
) -> bool:
    """Wait for the end of `tasks` even while this task is cancelled; whether it was."""
    cancelled = False
    while pending := [task for task in tasks if not task.done()]:
        try:
            await asyncio.wait(pending)
        except asyncio.CancelledError:
            cancelled = True
            on_cancel()
    return cancelled
