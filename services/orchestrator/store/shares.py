"""What delegated children may spend of their parent's cap (FLD-017, TRN-272).

A child is given its share before it starts. As long as it has not been accounted for, the parent's cap
is lessened by the share, or by what the child spent when that is more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from services.orchestrator.store.pool import Connection

# A child that would get less is not begun.
LEAST_USD = 0.01


@dataclass(frozen=True, slots=True)
class Refused:
    """There is too little left for another child."""

    left_usd: float


@dataclass(frozen=True, slots=True)
class Share:
    """What a child may spend; None: the parent has no cap."""

    amount_usd: float | None


async def give(connection: Connection, *, parent_id: str, child_id: str, among: int = 1) -> Share | Refused:
    """Give a child that is about to start its part of what is left of the parent's cap.

    The parent's row is locked first, so the parts of children that start at once, in whatever process,
    never come to more than what is left. The share becomes the child's own cap.

    Args:
        connection: In a transaction.
        parent_id: The conversation that delegates; it exists.
        child_id: The conversation of the child, already stored; it is left as it is when refused.
        among: How many children, this one included, are still to be given a part of what is left.
    """
    cursor = await connection.execute(
        "select cost_cap_usd::float8 as cap, spent_usd::float8 as spent from conversations "
        "where id = %s for update",
        (parent_id,),
    )
    parent = await cursor.fetchone()
    assert parent is not None, "the parent exists"
    amount: float | None = None
    if parent["cap"] > 0:
        left = parent["cap"] - parent["spent"] - await held(connection, parent_id)
        if left < LEAST_USD:
            return Refused(max(0.0, left))
        # Rounded down to what the column keeps, so that the parts never come to more than what is left.
        amount = max(LEAST_USD, math.floor(left / max(1, among) * 1e8) / 1e8)
    await connection.execute(
        "insert into budget_shares (child_id, parent_id, amount_usd) values (%s, %s, %s)",
        (child_id, parent_id, amount),
    )
    await connection.execute(
        "update conversations set parent_conversation_id = %s, cost_cap_usd = coalesce(%s, 0) where id = %s",
        (parent_id, amount, child_id),
    )
    return Share(amount)


async def held(connection: Connection, parent_id: str) -> float:
    """What children that are not accounted for hold of the parent's cap, or have spent beyond it."""
    cursor = await connection.execute(
        """
        select coalesce(sum(greatest(s.amount_usd, c.spent_usd)), 0)::float8 as held
        from budget_shares s join conversations c on c.id = s.child_id where s.parent_id = %s
        """,
        (parent_id,),
    )
    row = await cursor.fetchone()
    assert row is not None
    return float(row["held"])


async def settle(connection: Connection, child_id: str) -> bool:
    """Add what a child spent to its parent, once, and free what is left of its share (TRN-272).

    Returns:
        Whether there was something to account for.
    """
    # The parent's row first, in the order in which its turn locks.
    await connection.execute(
        "select 1 from conversations where id = (select parent_id from budget_shares where child_id = %s) "
        "for update",
        (child_id,),
    )
    cursor = await connection.execute(
        """
        with settled as (delete from budget_shares where child_id = %s returning child_id, parent_id)
        update conversations parent
        set spent_usd = parent.spent_usd + child.spent_usd,
            unknown_cost_calls = parent.unknown_cost_calls + child.unknown_cost_calls
        from settled join conversations child on child.id = settled.child_id
        where parent.id = settled.parent_id
        """,
        (child_id,),
    )
    return cursor.rowcount == 1


async def settle_ended(connection: Connection, parent_id: str) -> int:
    """Account for children that nobody works on and that wait for nobody: their delegation was cut off.

    Returns:
        How many.
    """
    cursor = await connection.execute(
        """
        select s.child_id from budget_shares s
        where s.parent_id = %s
            and not exists (select from turns t where t.conversation_id = s.child_id)
            and not exists (
                select from approvals a where a.conversation_id = s.child_id and a.status = 'pending')
        """,
        (parent_id,),
    )
    ended = [str(row["child_id"]) for row in await cursor.fetchall()]
    return sum([await settle(connection, child_id) for child_id in ended])
