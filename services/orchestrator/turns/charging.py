"""Charging what a turn spends: conversation, run and ledger, in the transaction that stores the reason."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from services.orchestrator.calls.contract import CallOutcome
from services.orchestrator.hosts.own import OWN_HOST
from services.orchestrator.models.contract import Route
from services.orchestrator.money.account import Account
from services.orchestrator.store import conversations, ledger, runs, spending
from services.orchestrator.store.ledger import Purpose
from services.orchestrator.store.pool import Connection
from services.orchestrator.store.records import Usage
from services.orchestrator.turns.turn import Turn


@dataclass(frozen=True, slots=True)
class Charged:
    """What was charged; shown once it is committed."""

    cost_usd: float | None
    unknown_calls: int
    # Of the conversation, after it.
    spent_usd: float
    unknown_cost_calls: int

    def show(self, turn: Turn) -> None:
        """Let the turn's copies follow."""
        turn.recorder.spent(self.cost_usd, self.unknown_calls)
        turn.conversation = dataclasses.replace(
            turn.conversation, spent_usd=self.spent_usd, unknown_cost_calls=self.unknown_cost_calls
        )


def account_of(turn: Turn) -> Account:
    """Who pays for a turn."""
    return Account(turn.agent.id, turn.conversation_id, turn.run_id, turn.source)


async def charge_model_call(
    connection: Connection, turn: Turn, *, answered: bool, cost_usd: float | None, abandoned: Sequence[Route]
) -> Charged:
    """Charge a model call of the loop, and end what was promised to it.

    Args:
        connection: In the transaction that stores the reply, which is its entry in the ledger.
        turn: With its claim held.
        answered: Whether there is a reply.
        cost_usd: Of the reply; None: unknown, which adds 1 to the calls of unknown price (TRN-259).
        abandoned: Attempts that had begun to answer; each is an entry of unknown price (TRN-267).
    """
    for route in abandoned:
        await _record(connection, turn, "abandoned", route, None)
    await spending.take_back(connection, turn.conversation_id)
    unknown = (1 if answered and cost_usd is None else 0) + len(abandoned)
    return await _charge(connection, turn, cost_usd, unknown, model_calls=1)


async def charge_tools(connection: Connection, turn: Turn, outcomes: Sequence[CallOutcome]) -> Charged | None:
    """Charge what tools paid themselves; None when they paid nothing (TRN-263).

    Tools of the orchestrator ask models through `SideCalls`, which wrote the ledger; of what another
    host says that it paid, the entry is made here.
    """
    cost, unknown = 0.0, 0
    for outcome in outcomes:
        paid = outcome.cost_usd
        cost, unknown = cost + (paid or 0.0), unknown + outcome.unknown_cost_calls
        if outcome.host == OWN_HOST:
            continue
        route = Route(outcome.host, outcome.call.name)
        for price in [*([] if paid is None else [paid]), *[None] * outcome.unknown_cost_calls]:
            await _record(connection, turn, "tool", route, price)
    return await _charge(connection, turn, cost, unknown) if cost or unknown else None


async def _charge(
    connection: Connection, turn: Turn, cost_usd: float | None, unknown: int, *, model_calls: int = 0
) -> Charged:
    spent = await conversations.charge(
        connection, turn.conversation_id, cost_usd=cost_usd, unknown_calls=unknown
    )
    await runs.add(connection, turn.run_id, model_calls=model_calls, cost_usd=cost_usd, unknown_calls=unknown)
    return Charged(cost_usd, unknown, *spent)


async def _record(
    connection: Connection, turn: Turn, purpose: Purpose, route: Route, cost_usd: float | None
) -> None:
    await ledger.record(
        connection,
        purpose,
        agent_id=turn.agent.id,
        conversation_id=turn.conversation_id,
        run_id=turn.run_id,
        provider=route.provider,
        model=route.model,
        usage=Usage(),
        cost_usd=cost_usd,
    )
