"""Model calls outside the turn loop: titles, summaries, questions of tools (TRN-263 to TRN-271)."""

from __future__ import annotations

from contextlib import aclosing
from uuid import uuid4

import structlog

from services.orchestrator.models.contract import (
    Completed,
    ModelError,
    ModelRequest,
    Reply,
    Route,
    Served,
)
from services.orchestrator.models.facade import Models
from services.orchestrator.money.account import Account
from services.orchestrator.money.treasury import EXPECTED_USD, Promised, Treasury
from services.orchestrator.money.usage import stored_usage
from services.orchestrator.store import ledger, spending
from services.orchestrator.store.ledger import PURPOSES, Purpose
from services.orchestrator.store.pool import Database
from services.orchestrator.store.records import Usage

log = structlog.get_logger(__name__)

# How long money stays promised to a call whose process died.
_RESERVED_SECONDS = 900.0


class BudgetSpent(Exception):
    """A budget that the call would be paid from has nothing left; no model was asked."""


class SideCalls:
    """Asks models and writes each call into the ledger, never the prompt.

    What a call cost is charged to no conversation here: whether it is one's is the caller's to say.

    Args:
        models: The providers behind their routes.
        database: Holds the ledger.
        treasury: The budgets that the calls are paid from.
    """

    def __init__(self, models: Models, database: Database, treasury: Treasury) -> None:
        self._models = models
        self._database = database
        self._treasury = treasury

    async def ask(
        self, request: ModelRequest, purpose: Purpose, account: Account, *, attended: bool = False
    ) -> Reply:
        """Ask the routes of `request` for one reply.

        The reply is in the ledger when this returns, or the log says why it is not: an answer that was
        paid for is never lost to a failing write (TRN-269). Attempts and calls that had begun to answer
        and were left, this one included, are entries of unknown price (TRN-246, TRN-267).

        Raises:
            ValueError: The ledger knows no such purpose; no model was asked.
            BudgetSpent: See there.
            ModelError: No whole reply came.
        """
        if purpose not in PURPOSES:
            raise ValueError(f"the ledger knows no purpose {purpose!r}")
        reservation = str(uuid4())
        await self._promise(reservation, account, attended)
        # Whoever leaves now leaves these as calls of unknown price.
        begun: list[Route] = []
        try:
            async with aclosing(self._models.stream(request)) as events:
                async for event in events:
                    if isinstance(event, Served):
                        begun.append(event.route)
                    elif isinstance(event, Completed):
                        begun = list(event.reply.abandoned)
                        await self._record(purpose, account, event.reply.route, event.reply)
                        return event.reply
            raise AssertionError("a stream of model events ends with Completed or raises")
        except ModelError as error:
            begun = list(error.abandoned)
            raise
        finally:
            for route in begun:
                await self._record(purpose, account, route)
            await self._take_back(reservation)
            await self._treasury.look(account)

    async def _promise(self, reservation: str, account: Account, attended: bool) -> None:
        async with self._database.transaction() as connection:
            answer = await self._treasury.ask(
                connection,
                reservation,
                account,
                expected_usd=EXPECTED_USD,
                attended=attended,
                seconds=_RESERVED_SECONDS,
            )
        if not isinstance(answer, Promised):
            raise BudgetSpent

    async def _record(
        self, purpose: Purpose, account: Account, route: Route, reply: Reply | None = None
    ) -> None:
        """Make the entry; without a reply it is one of unknown price and tokens."""
        cost_usd = reply.cost_usd if reply else None
        try:
            async with self._database.connection() as connection:
                await ledger.record(
                    connection,
                    purpose,
                    agent_id=account.agent_id,
                    conversation_id=account.conversation_id,
                    run_id=account.run_id,
                    provider=route.provider,
                    model=route.model,
                    usage=stored_usage(reply) if reply else Usage(),
                    cost_usd=cost_usd,
                    estimated=reply.cost_estimated if reply else False,
                )
        except Exception as error:
            # The one place where the amount can still be found.
            log.exception(
                "ledger_entry_lost",
                purpose=purpose,
                agent=account.agent_id,
                route=str(route),
                cost_usd=cost_usd,
                error=type(error).__name__,
            )

    async def _take_back(self, reservation: str) -> None:
        try:
            async with self._database.connection() as connection:
                await spending.take_back(connection, reservation)
        except Exception as error:
            # It ends by itself.
            log.warning("reservation_not_taken_back", error=type(error).__name__)
