"""Charging what a turn spends: conversation, run and ledger, in the transaction that stores the reason."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from services.common.toolhost.nested import NestedCall
from services.orchestrator.calls.contract import CallOutcome
from services.orchestrator.hosts.own import OWN_HOST
from services.orchestrator.models.contract import Reply, Route
from services.orchestrator.money.account import Account
from services.orchestrator.money.usage import stored_usage
from services.orchestrator.store import conversations, ledger, runs, spending
from services.orchestrator.store.ledger import Purpose
from services.orchestrator.store.pool import Connection
from services.orchestrator.store.records import Usage
from services.orchestrator.turns.turn import NOTHING_CHARGED, Turn


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


async def charge_side_call(
    connection: Connection, turn: Turn, purpose: Purpose, reply: Reply | None, abandoned: Sequence[Route]
) -> Charged:
    """Charge a model call made for a turn beside its replies (TRN-264).

    What was promised to the reply it was made for stays promised.

    Args:
        connection: In the transaction that stores what it was for.
        turn: With its claim held.
        purpose: Of its entry in the ledger.
        reply: None when there is none.
        abandoned: As in `charge_model_call`.
    """
    for route in abandoned:
        await _record(connection, turn, "abandoned", route, None)
    if reply is not None:
        await _record(connection, turn, purpose, reply.route, reply.cost_usd, reply=reply)
    cost = reply.cost_usd if reply is not None else None
    unknown = (1 if reply is not None and cost is None else 0) + len(abandoned)
    return await _charge(connection, turn, cost, unknown)


async def charge_tools(connection: Connection, turn: Turn, outcomes: Sequence[CallOutcome]) -> Charged | None:
    """Charge what tools paid themselves; None when they paid nothing (TRN-263).

    What calls of a script cost is charged already, as they ended.
    """
    left = [turn.charged.get(each.call.id, NOTHING_CHARGED).left_of(each) for each in outcomes]
    cost, unknown = sum(each.cost_usd for each in left), sum(each.unknown_calls for each in left)
    children = sum(outcome.script.child_spent_usd for outcome in outcomes if outcome.script)
    await enter_tools(connection, turn, outcomes)
    if not (cost or unknown or children):
        return None
    return await _charge(connection, turn, cost, unknown, children_usd=children)


async def charge_nested(connection: Connection, turn: Turn, calls: Sequence[NestedCall]) -> Charged | None:
    """Charge calls of a script that still runs; None when they paid nothing (TRN-290)."""
    cost = sum(call.cost_usd or 0.0 for call in calls)
    unknown = sum(call.unknown_cost_calls for call in calls)
    return await _charge(connection, turn, cost, unknown) if cost or unknown else None


async def enter_tools(connection: Connection, turn: Turn, outcomes: Sequence[CallOutcome]) -> None:
    """Make the ledger's entries of what other hosts say that their tools paid.

    Tools of the orchestrator ask models through `SideCalls`, which wrote the ledger.
    """
    for outcome in outcomes:
        if outcome.host == OWN_HOST:
            continue
        route = Route(outcome.host, outcome.call.name)
        paid = [] if outcome.cost_usd is None else [outcome.cost_usd]
        for price in [*paid, *[None] * outcome.unknown_cost_calls]:
            await _record(connection, turn, "tool", route, price)


async def _charge(
    connection: Connection,
    turn: Turn,
    cost_usd: float | None,
    unknown: int,
    *,
    model_calls: int = 0,
    children_usd: float = 0.0,
) -> Charged:
    # What children spent is in their own runs; the conversation pays it too (SCR-132).
    spent = await conversations.charge(
        connection, turn.conversation_id, cost_usd=(cost_usd or 0) + children_usd, unknown_calls=unknown
    )
    await runs.add(connection, turn.run_id, model_calls=model_calls, cost_usd=cost_usd, unknown_calls=unknown)
    return Charged(cost_usd, unknown, *spent)


async def _record(
    connection: Connection,
    turn: Turn,
    purpose: Purpose,
    route: Route,
    cost_usd: float | None,
    *,
    reply: Reply | None = None,
) -> None:
    await ledger.record(
        connection,
        purpose,
        agent_id=turn.agent.id,
        conversation_id=turn.conversation_id,
        run_id=turn.run_id,
        provider=route.provider,
        model=route.model,
        usage=stored_usage(reply) if reply is not None else Usage(),
        cost_usd=cost_usd,
        estimated=reply is not None and reply.cost_estimated,
    )
