"""What was spent by day, what is promised to running calls, and what was said about going on.

The table `spending` is the ledger by day, agent and schedule. Triggers write it, so that no entry of
the ledger is made without it; nothing that is deleted later takes from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

from services.orchestrator.store.pool import Connection

Scope = Literal["crew", "agent", "schedule"]
Period = Literal["day", "month"]

# Key of the advisory lock under which budgets are looked at and promised from.
_LOCK = 0x6D6F6E65


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that may be spent in a day or a month (FLD-016)."""

    scope: Scope
    # Of the agent or schedule, "<agent>/<schedule>"; "" for the crew.
    id: str
    period: Period
    limit_usd: float


@dataclass(frozen=True, slots=True)
class Spent:
    """What one agent spent for one schedule, or for none, with what is promised to its running calls."""

    agent_id: str
    schedule: str
    day_usd: float
    month_usd: float
    reserved_usd: float
    unknown_day: int
    unknown_month: int


async def take_turns(connection: Connection) -> None:
    """Let no other process promise from the budgets until this transaction ends (FLD-017)."""
    await connection.execute("select pg_advisory_xact_lock(%s)", (_LOCK,))


async def today(connection: Connection) -> date:
    """The person's calendar day (TRN-003)."""
    cursor = await connection.execute("select person_day() as day")
    row = await cursor.fetchone()
    assert row is not None
    day: date = row["day"]
    return day


async def this_month(connection: Connection) -> list[Spent]:
    """What was spent on this day and in this month of the person, and what is promised."""
    cursor = await connection.execute(
        """
        with spent as (
            select agent_id, schedule,
                sum(cost_usd) filter (where day = person_day()) as day_usd, sum(cost_usd) as month_usd,
                sum(unknown_cost_calls) filter (where day = person_day()) as unknown_day,
                sum(unknown_cost_calls) as unknown_month
            from spending
            where day between date_trunc('month', person_day())::date and person_day()
            group by agent_id, schedule
        ), reserved as (
            select agent_id, schedule, sum(amount_usd) as reserved_usd
            from reservations where expires_at is null or expires_at > now()
            group by agent_id, schedule
        )
        select agent_id, schedule, coalesce(day_usd, 0)::float8 as day_usd,
            coalesce(month_usd, 0)::float8 as month_usd, coalesce(reserved_usd, 0)::float8 as reserved_usd,
            coalesce(unknown_day, 0)::bigint as unknown_day,
            coalesce(unknown_month, 0)::bigint as unknown_month
        from spent full join reserved using (agent_id, schedule)
        """
    )
    return [Spent(**row) for row in await cursor.fetchall()]


async def reserve(
    connection: Connection,
    reservation_id: str,
    *,
    conversation_id: str | None,
    agent_id: str,
    schedule: str,
    amount_usd: float,
    seconds: float | None = None,
) -> None:
    """Promise an amount to a call.

    Args:
        connection: In the transaction that holds `take_turns`.
        reservation_id: A turn's is the id of its conversation.
        conversation_id: Of the turn whose claim this transaction holds; the promise ends with it.
        agent_id: Who spends.
        schedule: The job that is worked for, or "".
        amount_usd: At least 0.
        seconds: How long the promise of a call outside a turn lasts if nobody takes it back.
    """
    await connection.execute(
        """
        insert into reservations (id, conversation_id, agent_id, schedule, amount_usd, expires_at)
        values (%s, %s, %s, %s, %s, now() + make_interval(secs => %s))
        """,
        (reservation_id, conversation_id, agent_id, schedule, amount_usd, seconds),
    )


async def take_back(connection: Connection, reservation_id: str) -> None:
    """End a promise: the call was charged, or never made."""
    await connection.execute("delete from reservations where id = %s", (reservation_id,))


async def answers(connection: Connection) -> dict[tuple[Scope, str, Period], bool]:
    """What the person said for today about going on past budgets."""
    cursor = await connection.execute(
        "select scope, scope_id, period, go_on from budget_answers where day = person_day()"
    )
    return {(row["scope"], row["scope_id"], row["period"]): row["go_on"] for row in await cursor.fetchall()}


async def answer(connection: Connection, budgets: Sequence[Budget], *, go_on: bool, by: str) -> None:
    """Keep for the rest of the day whether attended turns go on past these budgets."""
    for budget in budgets:
        await connection.execute(
            """
            insert into budget_answers (day, scope, scope_id, period, go_on, decided_by)
            values (person_day(), %s, %s, %s, %s, %s)
            on conflict (day, scope, scope_id, period) do update
            set go_on = excluded.go_on, decided_by = excluded.decided_by, at = now()
            """,
            (budget.scope, budget.id, budget.period, go_on, by),
        )
