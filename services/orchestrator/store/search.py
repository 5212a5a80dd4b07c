"""Finding messages by what was said in them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from services.orchestrator.store.pool import Connection

# Newest messages that match, among which hits are chosen.
_CANDIDATES = 1_000
_PER_CONVERSATION = 3
# A search of very many messages must not hold a connection for long.
SECONDS = 10


@dataclass(frozen=True, slots=True)
class Found:
    """A message that holds all terms."""

    message_id: int
    conversation_id: str
    title: str
    agent_id: str
    role: str
    content: str
    created_at: datetime


async def find(
    connection: Connection, terms: Sequence[str], *, agent_id: str | None, limit: int
) -> list[Found]:
    """Messages of people and agents that hold every term, newest first.

    A conversation gives at most three. The same text in several conversations of one agent is told of
    the newest only: of a fork rather than of its source (TRN-342).

    Args:
        connection: Inside a transaction.
        terms: At least one, each with something to compare; every character stands for itself.
        agent_id: Whose conversations; None: everybody's.
        limit: The most to return.

    Raises:
        psycopg.errors.QueryCanceled: It took longer than `SECONDS`.
    """
    holds = " and ".join(["m.said like '%%' || folded(%s) || '%%'"] * len(terms))
    await connection.execute(f"set local statement_timeout = '{SECONDS}s'")
    cursor = await connection.execute(
        f"""
        with matching as (
            select m.id, m.conversation_id, m.role, m.content, m.created_at, c.title, c.agent_id
            from messages m join conversations c on c.id = m.conversation_id
            where {holds} and (%s::text is null or c.agent_id = %s)
            order by m.id desc limit {_CANDIDATES}
        ), told as (
            select *, first_value(conversation_id) over (
                partition by agent_id, content order by created_at desc, id desc) as newest
            from matching
        ), counted as (
            select *, row_number() over (
                partition by conversation_id order by created_at desc, id desc) as place
            from told where conversation_id = newest
        )
        select * from counted where place <= {_PER_CONVERSATION}
        order by created_at desc, id desc limit %s
        """,  # noqa: S608 - constant text
        (*(_literal(term) for term in terms), agent_id, agent_id, limit),
    )
    return [
        Found(
            message_id=row["id"],
            conversation_id=str(row["conversation_id"]),
            title=row["title"],
            agent_id=row["agent_id"],
            role=row["role"],
            content=row["content"],
            created_at=row["created_at"],
        )
        for row in await cursor.fetchall()
    ]


def _literal(term: str) -> str:
    """The pattern that means `term` and nothing else."""
    return re.sub(r"([\\%_])", r"\\\1", term)
