"""The tool calls of a script: one, or several of one line (SCR-045 to 056, 068 to 096).

Whether a call is open to scripts, and whether a person would have to be asked, is known of every call
of a line before any of them runs. Nothing here waits for a person.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import structlog

from services.common.toolhost.nested import NestedCall
from services.common.wording import Locale, load
from services.orchestrator.calls.admission import SCRIPT_ANSWER_CHARS, Admission, Admitted, Asking
from services.orchestrator.calls.contract import CallOutcome
from services.orchestrator.calls.inner import InnerCalls
from services.orchestrator.calls.steps import step_arguments, step_output
from services.orchestrator.scripts.limits import BATCH_AT_ONCE
from services.orchestrator.scripts.reach import Reach, writes
from services.orchestrator.scripts.session import Refusal
from services.orchestrator.store.pool import DatabaseLost
from services.orchestrator.store.records import StoredCall
from services.orchestrator.store.turns import ClaimLost

_log = structlog.get_logger(__name__)

# The one tool whose rules are patterns of the owner's own lists, which may be quoted (SCR-090).
_SHELL = "shell_run"


@dataclass(frozen=True, slots=True)
class Asked:
    """A call that a script asks for."""

    # Within the script, from 1.
    number: int
    name: str
    # JSON text of an object.
    arguments: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of it: for the script, and for the run card."""

    number: int
    ok: bool
    text: str
    entry: NestedCall


Ended = Callable[[Outcome], Awaitable[None]]


@dataclass(slots=True)
class _Place:
    """One call of a line on its way."""

    asked: Asked
    call: StoredCall
    # None: there is no such tool.
    admission: Admission | None
    # It took room of the turn's budget and has not begun.
    reserved: bool = False
    outcome: Outcome | None = field(default=None)


class Calling:
    """Makes the calls of one script.

    Args:
        inner: The way through gate and host.
        reach: What the script may call.
        script_id: Of the `tool_script` call.
        locale: Of the sentences.
    """

    def __init__(self, inner: InnerCalls, reach: Reach, script_id: str, locale: Locale) -> None:
        self._inner = inner
        self._reach = reach
        self._script_id = script_id
        self._locale: Locale = locale
        self._words = load("orchestrator")
        self._stop = asyncio.Event()
        self._running: set[asyncio.Task[None]] = set()
        # A writing call ended and nobody knows whether it took effect.
        self.unknown = False
        # Room of the turn's budget that the script holds.
        self.room_used = 0

    async def stop(self) -> None:
        """End the calls that run and wait for them: the script is over."""
        self._stop.set()
        while running := [task for task in self._running if not task.done()]:
            await asyncio.wait(running)

    def take(self, calls: int) -> Refusal | None:
        """Room in the turn's budget; a refusal when there is none (SCR-105, SCR-106)."""
        budget = self._inner.budget
        if budget is None or budget.take(calls):
            self.room_used += calls
            return None
        return self._refusal("budget", limit=budget.limit)

    async def all_of(self, asked: Sequence[Asked], ended: Ended) -> list[Outcome] | Refusal:
        """Make the calls of one line; their outcomes in the written order.

        A refusal before the first call means that none of them ran. One that comes later, from a
        gate that changed its mind, leaves done what is done (SCR-093).
        """
        for each in asked:
            if (text := self._reach.refusal(each.name, self._locale)) is not None:
                return Refusal(text)
        places = await self._admitted(asked)
        for place in places:
            if refusal := self._stopped_by(place):
                await self._record_withheld(place)
                return refusal
        known = [place for place in places if place.admission is not None]
        if refusal := self.take(len(known)):
            return refusal
        for place in known:
            place.reserved = True
        try:
            if len(known) > 1 and any(self._writes(place) for place in known):
                refusal = await self._one_by_one(places, ended)
            else:
                refusal = await self._together(places, ended)
        finally:
            self._give_back(places)
        if refusal is not None:
            return refusal
        return [place.outcome for place in places if place.outcome is not None]

    async def _admitted(self, asked: Sequence[Asked]) -> list[_Place]:
        places = [
            _Place(each, StoredCall(f"{self._script_id}.{each.number}", each.name, each.arguments), None)
            for each in asked
        ]
        known = [place for place in places if self._reach.callable.find(place.asked.name) is not None]
        if known:
            admissions = await self._inner.admit([place.call for place in known])
            for place, admission in zip(known, admissions, strict=True):
                place.admission = admission
        return places

    async def _record_withheld(self, place: _Place) -> None:
        if isinstance(place.admission, CallOutcome):
            await self._inner.withheld(place.admission)

    def _stopped_by(self, place: _Place) -> Refusal | None:
        """Why the script ends here, if the gate says so; no argument is quoted (SCR-086 to 090)."""
        name = place.asked.name
        match place.admission:
            case Asking(draft=draft) if name == _SHELL and draft.rule and draft.review is None:
                return self._refusal("asks_by_pattern", tool=name, pattern=draft.rule)
            case Asking():
                return self._refusal("asks", tool=name)
            case CallOutcome(verdict="refused", reviewed_by=judge) if judge:
                return self._refusal("reviewed", tool=name)
            case CallOutcome(verdict="refused", reason=rule) if name == _SHELL and rule:
                return self._refusal("denied", tool=name, pattern=rule)
        return None

    async def _one_by_one(self, places: Sequence[_Place], ended: Ended) -> Refusal | None:
        """In the written order, each judged again right before its turn (SCR-072, SCR-092)."""
        for n, place in enumerate(places):
            if self._stop.is_set():
                raise asyncio.CancelledError
            if n and isinstance(place.admission, Admitted):
                place.admission = await self._inner.judge_again(place.admission)
                if refusal := self._stopped_by(place):
                    await self._record_withheld(place)
                    return refusal
            await self._begin([place])
            await self._settled([self._live(place, ended)])
        return None

    async def _together(self, places: Sequence[_Place], ended: Ended) -> Refusal | None:
        """Four at a time (SCR-071)."""
        await self._begin(places)
        at_once = asyncio.Semaphore(BATCH_AT_ONCE)

        async def one(place: _Place) -> None:
            async with at_once:
                if not self._stop.is_set():
                    await self._live(place, ended)
                elif isinstance(place.admission, Admitted):
                    # Says on record that it did not run after all.
                    await self._inner.run(place.admission, self._stop)

        await self._settled([one(place) for place in places])
        return None

    async def _begin(self, places: Sequence[_Place]) -> None:
        admitted = [place.admission for place in places if isinstance(place.admission, Admitted)]
        if admitted:
            await self._inner.begin(admitted)

    async def _settled(self, lives: Sequence[Awaitable[None]]) -> None:
        """Let calls come to their ends, also while the script is stopped."""
        tasks = {asyncio.ensure_future(life) for life in lives}
        self._running |= tasks
        try:
            await asyncio.wait(tasks)
        finally:
            if all(task.done() for task in tasks):
                self._running -= tasks
        for task in tasks:
            task.result()

    async def _live(self, place: _Place, ended: Ended) -> None:
        try:
            place.outcome = await self._outcome(place)
        except (ClaimLost, *DatabaseLost):
            # Not the script's affair: the turn itself can not go on here.
            raise
        except Exception as error:
            _log.exception("script_call_failed", call_id=place.call.id)
            text = self._words.text(self._locale, "scripts.call_failed", kind=type(error).__name__)
            place.outcome = self._failure(place, text)
        await ended(place.outcome)

    async def _outcome(self, place: _Place) -> Outcome:
        place.reserved = False
        match place.admission:
            case None:
                return self._failure(place, self._reach.unknown(place.asked.name, self._locale))
            case Admitted() as admitted:
                outcome = await self._inner.run(admitted, self._stop)
                if outcome.outcome == "unknown" and writes(admitted.held.spec):
                    self.unknown = True
                gated = writes(admitted.held.spec) and outcome.ms is not None
                return self._of(place, outcome, gated=gated)
            case CallOutcome() as outcome:
                await self._record_withheld(place)
                return self._of(place, outcome, gated=False)
            case Asking():
                raise AssertionError("a call that asks was let through")

    def _of(self, place: _Place, outcome: CallOutcome, *, gated: bool) -> Outcome:
        text = outcome.text
        if not outcome.ok:
            text = text.removeprefix(self._words.text(self._locale, "calls.results.error_prefix"))
        entry = NestedCall(
            name=outcome.call.name,
            arguments=outcome.step_arguments,
            ok=outcome.ok,
            output=outcome.step_output,
            ms=outcome.ms or 0,
            cost_usd=outcome.cost_usd,
            metered=outcome.cost_usd is not None or outcome.unknown_cost_calls > 0,
            gated=gated,
        )
        return Outcome(place.asked.number, outcome.ok, text[:SCRIPT_ANSWER_CHARS], entry)

    def _failure(self, place: _Place, text: str) -> Outcome:
        entry = NestedCall(
            name=place.asked.name[:80],
            arguments=step_arguments(place.asked.arguments, self._locale),
            ok=False,
            output=step_output(text, ok=False),
            ms=0,
        )
        return Outcome(place.asked.number, False, text, entry)

    def _writes(self, place: _Place) -> bool:
        held = self._reach.callable.find(place.asked.name)
        return held is not None and writes(held.spec)

    def _give_back(self, places: Sequence[_Place]) -> None:
        """Room of calls that never began goes back to the turn (SCR-080)."""
        unbegun = sum(place.reserved for place in places)
        self._return(unbegun)

    def give_back_all(self) -> None:
        """The script begins anew: it has made no call yet."""
        self._return(self.room_used)

    def _return(self, calls: int) -> None:
        self.room_used -= calls
        if calls and self._inner.budget is not None:
            self._inner.budget.give_back(calls)

    def _refusal(self, key: str, **values: object) -> Refusal:
        return Refusal(self._words.text(self._locale, f"scripts.refused.{key}", **values))
