"""Conversations: one row each, and the daily one of a channel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any
from uuid import uuid4

from services.orchestrator.store import ledger, shares
from services.orchestrator.store.pool import Connection, Row
from services.orchestrator.store.records import Conversation

_COLUMNS = """
    c.id, c.agent_id, c.channel, c.title, c.created_at, c.updated_at, c.autonomous, c.skills,
    c.approval_ttl_seconds, c.cost_cap_usd::float8, c.spent_usd::float8, c.unknown_cost_calls,
    c.forked_from, c.parent_conversation_id,
    array(select g.allows from grants g where g.conversation_id = c.id order by g.created_at, g.allows)
        as auto_approve
"""

# What a person may change, and the column it stands in.
EDITABLE: Mapping[str, str] = {
    "title": "title",
    "autonomous": "autonomous",
    "cost_cap_usd": "cost_cap_usd",
    "skills": "skills",
}


async def create(
    connection: Connection,
    *,
    agent_id: str,
    channel: str,
    title: str,
    autonomous: bool,
    cost_cap_usd: float,
    approval_ttl_seconds: int | None = None,
    forked_from: str | None = None,
) -> Conversation:
    """Open a conversation."""
    conversation_id = str(uuid4())
    await connection.execute(
        """
        insert into conversations
            (id, agent_id, channel, title, autonomous, cost_cap_usd, approval_ttl_seconds, forked_from)
        values (%s, %s, %s, %s, %s, %s, %s, %s)
        """,
        (
            conversation_id,
            agent_id,
            channel,
            title,
            autonomous,
            cost_cap_usd,
            approval_ttl_seconds,
            forked_from,
        ),
    )
    created = await get(connection, conversation_id)
    assert created is not None
    return created


async def get(connection: Connection, conversation_id: str) -> Conversation | None:
    """The conversation, or None."""
    cursor = await connection.execute(
        f"select {_COLUMNS} from conversations c where c.id = %s",  # noqa: S608 - constant columns
        (conversation_id,),
    )
    row = await cursor.fetchone()
    return _conversation(row) if row else None


async def lock(connection: Connection, conversation_id: str) -> Conversation | None:
    """The conversation, held by this transaction against every other writer of it."""
    cursor = await connection.execute(
        "select id from conversations where id = %s for update", (conversation_id,)
    )
    return await get(connection, conversation_id) if await cursor.fetchone() else None


async def newest(connection: Connection, *, agent_id: str | None, limit: int) -> list[Conversation]:
    """The conversations a person opened, newest change first (TRN-007, TRN-014)."""
    cursor = await connection.execute(
        f"""
        select {_COLUMNS} from conversations c
        where c.parent_conversation_id is null and (%(agent)s::text is null or c.agent_id = %(agent)s)
        order by c.updated_at desc, c.id limit %(limit)s
        """,  # noqa: S608 - constant columns
        {"agent": agent_id, "limit": limit},
    )
    return [_conversation(row) for row in await cursor.fetchall()]


async def of_day(connection: Connection, agent_id: str, channel: str, day: date) -> str | None:
    """The id of the day's conversation; takes a lock so that two first messages open one (TRN-002)."""
    await connection.execute(
        "select pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"{agent_id}\n{channel}\n{day}",)
    )
    cursor = await connection.execute(
        "select conversation_id from daily_conversations where agent_id = %s and channel = %s and day = %s",
        (agent_id, channel, day),
    )
    row = await cursor.fetchone()
    return str(row["conversation_id"]) if row else None


async def set_of_day(
    connection: Connection, agent_id: str, channel: str, day: date, conversation_id: str
) -> None:
    """Make this the conversation of the day."""
    await connection.execute(
        """
        insert into daily_conversations (agent_id, channel, day, conversation_id) values (%s, %s, %s, %s)
        on conflict (agent_id, channel, day) do update set conversation_id = excluded.conversation_id
        """,
        (agent_id, channel, day, conversation_id),
    )


async def update(connection: Connection, conversation_id: str, changes: Mapping[str, Any]) -> None:
    """Change what `EDITABLE` names; a person's edit moves `updated_at` (TRN-015)."""
    for key, value in changes.items():
        await connection.execute(
            f"update conversations set {EDITABLE[key]} = %s, updated_at = now() where id = %s",  # noqa: S608 - a column of EDITABLE
            (value, conversation_id),
        )
    if "title" in changes:
        await connection.execute(
            "update conversations set title_by_person = true where id = %s", (conversation_id,)
        )


async def title_if_unnamed(connection: Connection, conversation_id: str, title: str) -> bool:
    """Give a title to a conversation that has none; a person's own always stays (TRN-016)."""
    cursor = await connection.execute(
        """
        update conversations set title = %s, title_from_message = true
        where id = %s and title = '' and not title_by_person
        """,
        (title, conversation_id),
    )
    return cursor.rowcount == 1


async def take_for_naming(connection: Connection, conversation_id: str) -> Conversation | None:
    """The conversation, when its title is its first message's; never a second time (TRN-016)."""
    cursor = await connection.execute(
        """
        update conversations set title_from_message = false
        where id = %s and title_from_message and not title_by_person
        """,
        (conversation_id,),
    )
    return await get(connection, conversation_id) if cursor.rowcount else None


async def name(connection: Connection, conversation_id: str, title: str) -> bool:
    """Give the title a model found, unless a person chose one; its place in lists stays (TRN-015)."""
    cursor = await connection.execute(
        "update conversations set title = %s where id = %s and not title_by_person", (title, conversation_id)
    )
    return cursor.rowcount == 1


async def delete(connection: Connection, conversation_id: str) -> bool:
    """Remove the conversation with everything that hangs on it (TRN-017); what it cost stays counted."""
    await shares.settle(connection, conversation_id)
    await ledger.keep_turns_of(connection, conversation_id)
    cursor = await connection.execute("delete from conversations where id = %s", (conversation_id,))
    return cursor.rowcount == 1


async def charge(
    connection: Connection, conversation_id: str, *, cost_usd: float | None, unknown_calls: int
) -> tuple[float, int]:
    """Add what was spent; a call without a price counts and adds nothing (TRN-259).

    Returns:
        The new total in USD and the new number of calls without a price.
    """
    cursor = await connection.execute(
        """
        update conversations
        set spent_usd = spent_usd + %s, unknown_cost_calls = unknown_cost_calls + %s
        where id = %s returning spent_usd::float8, unknown_cost_calls
        """,
        (cost_usd or 0, unknown_calls, conversation_id),
    )
    row = await cursor.fetchone()
    return (row["spent_usd"], row["unknown_cost_calls"]) if row else (0.0, 0)


async def grant(connection: Connection, conversation_id: str, allows: str) -> None:
    """Let a tool, or a `tool:scope`, run unasked in this conversation (TRN-201)."""
    await connection.execute(
        "insert into grants (conversation_id, allows) values (%s, %s) on conflict do nothing",
        (conversation_id, allows),
    )


async def count_use(connection: Connection, conversation_id: str, allows: str) -> None:
    """Count that a grant let a call through (FLD-021)."""
    await connection.execute(
        "update grants set uses = uses + 1 where conversation_id = %s and allows = %s",
        (conversation_id, allows),
    )


async def uses(connection: Connection, conversation_id: str) -> Mapping[str, int]:
    """How often each grant of a conversation let a call through."""
    cursor = await connection.execute(
        "select allows, uses from grants where conversation_id = %s order by created_at, allows",
        (conversation_id,),
    )
    return {row["allows"]: row["uses"] for row in await cursor.fetchall()}


async def set_grants(connection: Connection, conversation_id: str, allows: Sequence[str]) -> None:
    """Keep exactly these grants, as a person says; those that stay keep their count of uses."""
    await connection.execute("update conversations set updated_at = now() where id = %s", (conversation_id,))
    await connection.execute(
        "delete from grants where conversation_id = %s and not (allows = any(%s))",
        (conversation_id, list(allows)),
    )
    for name in allows:
        await grant(connection, conversation_id, name)


def _conversation(row: Row) -> Conversation:
    return Conversation(
        id=str(row["id"]),
        agent_id=row["agent_id"],
        channel=row["channel"],
        title=row["title"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        autonomous=row["autonomous"],
        skills=tuple(row["skills"]),
        auto_approve=tuple(row["auto_approve"]),
        approval_ttl_seconds=row["approval_ttl_seconds"],
        cost_cap_usd=row["cost_cap_usd"],
        spent_usd=row["spent_usd"],
        unknown_cost_calls=row["unknown_cost_calls"],
        forked_from=str(row["forked_from"]) if row["forked_from"] else None,
        parent_conversation_id=str(row["parent_conversation_id"]) if row["parent_conversation_id"] else None,
    )
