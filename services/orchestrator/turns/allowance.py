"""Whether a turn may make another model call, as far as money goes (TRN-109, FLD-016 to FLD-018)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from uuid import uuid4

from services.common.wording import Catalogue
from services.orchestrator.calls.arguments import digest
from services.orchestrator.calls.contract import ApprovalDraft
from services.orchestrator.money import question
from services.orchestrator.money.budgets import Standing
from services.orchestrator.money.treasury import (
    EXPECTED_USD,
    AllPromised,
    Answer,
    Exhausted,
    Promised,
    Treasury,
)
from services.orchestrator.store import approvals, ledger, shares, turns
from services.orchestrator.store.pool import Database
from services.orchestrator.store.records import StoredCall
from services.orchestrator.turns.charging import account_of
from services.orchestrator.turns.turn import Ending, Halted, Turn, Waiting
from services.orchestrator.turns.writes import TurnWrites

# Calls without a price in one conversation and day.
UNPRICED_CALLS = 200
# How long a turn waits for calls of others that hold what is left of a budget, and how often it looks.
WAIT_SECONDS = 120.0
_LOOK_SECONDS = 0.5


class Allowance:
    """Stands before every model call of the loop.

    Args:
        database: For what is looked up.
        writes: For the request that asks the person.
        treasury: The budgets.
        catalogue: Sentences.
        approval_ttl_seconds: Of the request in a conversation that names none.
        clock: Seconds that only grow.
    """

    def __init__(
        self,
        *,
        database: Database,
        writes: TurnWrites,
        treasury: Treasury,
        catalogue: Catalogue,
        approval_ttl_seconds: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._writes = writes
        self._treasury = treasury
        self._catalogue = catalogue
        self._ttl_seconds = approval_ttl_seconds
        self._clock = clock

    async def before_call(self, turn: Turn) -> Ending | None:
        """None when the call may be made, with money promised to it; else how the turn ends.

        Raises:
            ClaimLost: Another process took the turn over.
        """
        if turn.conversation.over_budget and (await self._writes.reread(turn)).over_budget:
            return Halted("budget")
        if await self._unpriced(turn):
            return Halted("budget", self._catalogue.text(turn.locale, "money.unpriced", limit=UNPRICED_CALLS))
        ends_at = self._clock() + WAIT_SECONDS
        while True:
            match await self._ask(turn):
                case Promised():
                    return None
                case AllPromised() if self._clock() < ends_at:
                    await asyncio.sleep(_LOOK_SECONDS)
                case AllPromised(standings=standings) | Exhausted(standings=standings):
                    return await self._without_budget(turn, standings)

    async def charged(self, turn: Turn) -> None:
        """A model call was charged: the owner hears when a budget is nearly spent by it."""
        await self._treasury.look(account_of(turn))

    async def _ask(self, turn: Turn) -> Answer:
        async with self._database.transaction() as connection:
            await turns.hold(connection, turn.claim)
            # No child of a turn works while its model is asked; what was cut off is made up for here.
            settled = await shares.settle_ended(connection, turn.conversation_id)
            answer = await self._treasury.ask(
                connection,
                turn.conversation_id,
                account_of(turn),
                expected_usd=_expected(turn),
                attended=turn.attended,
            )
        if settled:
            await self._writes.reread(turn)
        return answer

    async def _unpriced(self, turn: Turn) -> bool:
        # The conversation's own count is of all days, and at hand.
        if turn.conversation.unknown_cost_calls < UNPRICED_CALLS:
            return False
        async with self._database.connection() as connection:
            return await ledger.unpriced_today(connection, turn.conversation_id) >= UNPRICED_CALLS

    async def _without_budget(self, turn: Turn, standings: Sequence[Standing]) -> Ending:
        """Ask once whether to go on today, or end a turn that has nobody to ask (FLD-016)."""
        budgets = question.in_words(self._catalogue, turn.locale, standings)
        if not turn.attended:
            return self._halted(turn, "money.spent.unattended", budgets)
        if any(standing.go_on is False for standing in standings):
            return self._halted(turn, "money.spent.declined", budgets)
        if all(standing.state != "spent" for standing in standings):
            return self._halted(turn, "money.spent.promised", budgets)
        async with self._database.connection() as connection:
            before = await approvals.last_status(connection, turn.run_id, "budget")
        if before == "expired":
            return self._halted(turn, "money.spent.unanswered", budgets)
        ttl = turn.conversation.approval_ttl_seconds or self._ttl_seconds
        call, draft = self._request(turn, standings, budgets)
        return Waiting(await self._writes.pause(turn, call, draft, ttl))

    def _request(
        self, turn: Turn, standings: Sequence[Standing], budgets: str
    ) -> tuple[StoredCall, ApprovalDraft]:
        arguments = question.arguments(standings)
        draft = ApprovalDraft(
            kind="budget",
            tool=question.NAME,
            arguments_json=arguments,
            arguments_sha256=digest(arguments),
            reason=self._catalogue.text(turn.locale, "money.question.reason"),
            rule=question.NAME,
            summary=self._catalogue.text(turn.locale, "money.question.summary", budgets=budgets),
            preview="",
            options=(),
            default_answer=None,
            may_always=False,
            grants=(),
            token="",
            target_state="",
        )
        return StoredCall(id=str(uuid4()), name=question.NAME, arguments=arguments), draft

    def _halted(self, turn: Turn, key: str, budgets: str) -> Halted:
        return Halted("budget", self._catalogue.text(turn.locale, key, budgets=budgets))


def _expected(turn: Turn) -> float:
    """What the next call may cost: as much as the last one of the conversation that has a price."""
    for message in reversed(turn.log):
        if message.provider is not None and message.cost_usd is not None:
            return message.cost_usd
    return EXPECTED_USD
