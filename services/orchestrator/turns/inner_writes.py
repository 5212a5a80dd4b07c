"""What is written of the calls that a running call makes: why each may run, how it ended, its price.

Many of them may begin and end at once, so they are written together: one transaction before a batch
begins, and after it as many as there are moments at which calls ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from crew.v1 import runs_pb2

from services.common.toolhost.nested import NestedCall
from services.orchestrator.calls.contract import CallOutcome, InnerStart
from services.orchestrator.store import audit, turns
from services.orchestrator.store.pool import Connection, Database
from services.orchestrator.turns.charging import charge_nested, enter_tools
from services.orchestrator.turns.trail import Trail
from services.orchestrator.turns.turn import NOTHING_CHARGED, Turn


@dataclass(slots=True)
class _Ended:
    """One finished call that is to be written and then shown."""

    call_id: str
    call: NestedCall
    step: runs_pb2.RunStep | None
    show: Callable[[], None]
    written: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class InnerWrites:
    """The writes for the inner calls of one batch.

    Every method raises `ClaimLost` when another process took the turn over, and the errors of
    `DatabaseLost` when Postgres is away.

    Args:
        database: Where to.
        trail: Makes the entries of the audit trail.
        turn: Whose calls they are.
    """

    def __init__(self, database: Database, trail: Trail, turn: Turn) -> None:
        self._database = database
        self._trail = trail
        self._turn = turn
        self._writing = asyncio.Lock()
        self._waiting: list[_Ended] = []
        # Ended and not on record yet: their entries go with the next write.
        self._outcomes: list[CallOutcome] = []

    async def starting(self, starts: Sequence[InnerStart]) -> None:
        """Record why calls may run, before any that may change something does (I1).

        Of a call that only reads it is recorded with its end: what a crash loses is made again.
        """
        turn = self._turn
        changing = []
        for start in starts:
            about = self._trail.call(turn, start.call, start.arguments_json, start.effect)
            about = replace(about, reviewed_by=start.reviewed_by)
            entry = audit.NewEntry("allowed", about, start.allowed_by, start.rule[:500])
            if start.effect == "read":
                turn.let_through[start.call.id] = entry
            else:
                changing.append(entry)
        if not changing:
            return
        async with self._database.transaction() as connection:
            await turns.hold(connection, turn.claim)
            await audit.record(connection, changing)

    def ended(self, outcome: CallOutcome) -> None:
        """Put the end of a call on record with the next write."""
        self._outcomes.append(outcome)

    async def nested(
        self, call_id: str, call: NestedCall, step: runs_pb2.RunStep | None, show: Callable[[], None]
    ) -> None:
        """Charge a call of the running script `call_id` and keep its step; then `show` it (TRN-290)."""
        ended = _Ended(call_id, call, step, show)
        self._waiting.append(ended)
        async with self._writing:
            # Whoever writes takes along what ended while it waited.
            if not ended.written.done():
                await self._write_waiting()
        await ended.written

    async def flush(self) -> None:
        """Record the ends that nothing was shown of."""
        async with self._writing:
            outcomes, self._outcomes = self._outcomes, []
            if outcomes:
                async with self._database.transaction() as connection:
                    await self._record_ends(connection, outcomes)
                self._recorded(outcomes)

    async def _write_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        outcomes, self._outcomes = self._outcomes, []
        try:
            await self._write(waiting, outcomes)
        except BaseException as error:
            for each in waiting:
                if not each.written.done():
                    each.written.set_exception(error)
                    # Whoever wrote raises it itself.
                    each.written.exception()
            raise
        for each in waiting:
            each.show()
            if not each.written.done():
                each.written.set_result(None)

    async def _write(self, waiting: Sequence[_Ended], outcomes: Sequence[CallOutcome]) -> None:
        turn = self._turn
        steps = {id(each.step): each.step for each in waiting if each.step is not None}
        async with self._database.transaction() as connection:
            await turns.hold(connection, turn.claim)
            charged = await charge_nested(connection, turn, [each.call for each in waiting])
            await self._record_ends(connection, outcomes)
            await turn.recorder.write(connection, *steps.values())
        self._recorded(outcomes)
        if charged is not None:
            for each in waiting:
                before = turn.charged.get(each.call_id, NOTHING_CHARGED)
                turn.charged[each.call_id] = before.plus(each.call)
            charged.show(turn)

    async def _record_ends(self, connection: Connection, outcomes: Sequence[CallOutcome]) -> None:
        await enter_tools(connection, self._turn, outcomes)
        await audit.record(connection, self._trail.ends(self._turn, outcomes))

    def _recorded(self, outcomes: Sequence[CallOutcome]) -> None:
        for outcome in outcomes:
            self._turn.let_through.pop(outcome.call.id, None)
