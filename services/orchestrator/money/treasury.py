"""Asking the budgets before a model call, and promising what it may cost (FLD-016, FLD-017)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from services.orchestrator.money.account import Account
from services.orchestrator.money.budgets import Standing, paying, standings
from services.orchestrator.money.notices import BudgetNotices, setting_of
from services.orchestrator.store import spending
from services.orchestrator.store.pool import Connection, Database
from services.orchestrator.store.spending import Budget

log = structlog.get_logger(__name__)

# What a call is expected to cost as long as nothing is known of its like.
EXPECTED_USD = 0.01


@dataclass(frozen=True, slots=True)
class Promised:
    """The call may be made; the amount is kept for it."""

    amount_usd: float


@dataclass(frozen=True, slots=True)
class Exhausted:
    """Budgets are spent: no call without a person's word."""

    standings: Sequence[Standing]


@dataclass(frozen=True, slots=True)
class AllPromised:
    """What is left is promised to calls that run now; some of it may come back when they end."""

    standings: Sequence[Standing]


Answer = Promised | Exhausted | AllPromised


class Treasury:
    """The budgets, over all processes.

    Args:
        database: Where spending and promises are, for all orchestrators.
        budgets: Those that have a limit.
        notices: Tells the owner of those that are nearly spent.
    """

    def __init__(self, database: Database, budgets: Sequence[Budget], notices: BudgetNotices) -> None:
        self._database = database
        self._budgets = tuple(budgets)
        self._notices = notices

    async def ask(
        self,
        connection: Connection,
        reservation_id: str,
        account: Account,
        *,
        expected_usd: float,
        attended: bool,
        seconds: float | None = None,
    ) -> Answer:
        """Promise a call its cost, if every budget it is paid from has room.

        What was spent and what is promised never come to more than a budget: a call is promised what is
        expected, or what is left when that is less, and no call when nothing is left. Only what a call
        costs beyond its promise passes a budget, so each call that runs passes it once at most.

        Args:
            connection: In a transaction; for a turn, with its claim held.
            reservation_id: See `spending.reserve`; taken back with the charge.
            account: Who pays.
            expected_usd: What the call is expected to cost.
            attended: Whether a person's word about going on today counts (FLD-016).
            seconds: How long the promise lasts when it is no turn's.
        """
        mine = paying(self._budgets, account)
        if not mine:
            return Promised(0.0)
        await spending.take_turns(connection)
        # What was promised to this holder before is not in its own way.
        await spending.take_back(connection, reservation_id)
        asked = [
            standing
            for standing in await self._standings(connection, mine)
            if not (attended and standing.state == "spent" and standing.go_on)
        ]
        if spent := [standing for standing in asked if standing.state == "spent"]:
            return Exhausted(spent)
        if full := [standing for standing in asked if standing.left_usd <= 0]:
            return AllPromised(full)
        amount = min([expected_usd, *(standing.left_usd for standing in asked)])
        await spending.reserve(
            connection,
            reservation_id,
            conversation_id=account.conversation_id if seconds is None else None,
            agent_id=account.agent_id,
            schedule=account.schedule,
            amount_usd=amount,
            seconds=seconds,
        )
        return Promised(amount)

    async def standings(self) -> list[Standing]:
        """Every budget as it stands now."""
        async with self._database.snapshot() as connection:
            return await self._standings(connection, self._budgets)

    async def answer_spent(self, *, go_on: bool, by: str) -> list[Standing]:
        """Keep the person's word for today about every budget that is spent; all budgets after it."""
        async with self._database.transaction() as connection:
            before = await self._standings(connection, self._budgets)
            spent = [standing.budget for standing in before if standing.state == "spent"]
            await spending.answer(connection, spent, go_on=go_on, by=by)
            return await self._standings(connection, self._budgets)

    async def look(self, account: Account) -> None:
        """Tell the owner of budgets that what was just charged brought near their end, or to it.

        Never fails: it stands behind charges that are done.
        """
        mine = paying(self._budgets, account)
        if not mine:
            return
        try:
            async with self._database.connection() as connection:
                for standing in await self._standings(connection, mine):
                    if cause := await self._notices.tell(connection, standing):
                        log.warning("budget_told_of", cause=cause, budget=setting_of(standing.budget))
        except Exception as error:
            # The next look tells it.
            log.warning("budgets_not_looked_at", error=type(error).__name__)

    @staticmethod
    async def _standings(connection: Connection, budgets: Sequence[Budget]) -> list[Standing]:
        spent = await spending.this_month(connection)
        return standings(budgets, spent, await spending.answers(connection))
