"""What model calls cost: the ledger behind the statistics (TRN-264, TRN-266).

Its entries are the paid messages of the logs and the rows of `side_calls`. The database adds each to
`spending` as it is written, see `store/spending.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from services.orchestrator.store.pool import Connection
from services.orchestrator.store.records import Usage

Purpose = Literal[
    "tool_summary", "image", "pdf", "script", "transcribe", "consolidate", "title", "recap", "wiki",
    "compact", "route", "brief", "review", "verify", "relevance",
    # A call of the loop that was left after it had begun to answer, and what a tool's host paid itself.
    "abandoned", "tool",
]  # fmt: skip
PURPOSES: frozenset[str] = frozenset(get_args(Purpose))

# One model call a row: the paid messages of the logs and every call outside them. Never runs, so
# that no call is counted twice.
_CALLS = """
    select m.created_at as at, c.agent_id, 'turn' as purpose, m.provider, m.model, m.prompt_tokens,
        m.completion_tokens, m.cached_tokens, m.reasoning_tokens, m.cost_usd, m.cost_estimated
    from messages m join conversations c on c.id = m.conversation_id
    where m.role = 'assistant' and m.provider is not null
    union all
    select at, agent_id, purpose, provider, model, prompt_tokens, completion_tokens, cached_tokens,
        reasoning_tokens, cost_usd, cost_estimated
    from side_calls
"""

_SUMS = """
    sum(cost_usd)::float8 as cost_usd, count(*) as calls,
    count(*) filter (where cost_usd is null) as unknown_cost_calls,
    count(*) filter (where cost_estimated) as estimated_cost_calls,
    coalesce(sum(prompt_tokens), 0)::bigint as prompt_tokens,
    coalesce(sum(completion_tokens), 0)::bigint as completion_tokens,
    coalesce(sum(cached_tokens), 0)::bigint as cached_tokens,
    coalesce(sum(reasoning_tokens), 0)::bigint as reasoning_tokens
"""


@dataclass(frozen=True, slots=True)
class Total:
    """Sums over the calls of one group; `names` say which group."""

    names: tuple[str, ...]
    # None: no call of the group has a price that is known, which is not 0.
    cost_usd: float | None
    calls: int
    unknown_cost_calls: int
    estimated_cost_calls: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    reasoning_tokens: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """The whole ledger, added up in the ways the page shows."""

    days: list[Total] = field(default_factory=list)
    models: list[Total] = field(default_factory=list)
    purposes: list[Total] = field(default_factory=list)
    by_agent: list[Total] = field(default_factory=list)
    # Agent, prompt tokens, cached tokens, over calls that reported a cache figure.
    cache_by_agent: list[tuple[str, int, int]] = field(default_factory=list)
    unknown_cache_calls: int = 0


async def record(
    connection: Connection,
    purpose: Purpose,
    *,
    agent_id: str,
    conversation_id: str | None,
    run_id: str | None,
    provider: str,
    model: str,
    usage: Usage,
    cost_usd: float | None,
    estimated: bool = False,
) -> None:
    """Add a call made outside the loop, or one of the loop that was abandoned (TRN-264, TRN-267).

    A conversation or run that is gone is left out of the entry, the entry is not. Looked up under the lock
    that the foreign key takes, so that one which is being deleted at this moment counts as gone too.

    Raises:
        ValueError: The purpose is none the ledger knows (TRN-265).
    """
    if purpose not in PURPOSES:
        raise ValueError(f"the ledger knows no purpose {purpose!r}")
    await connection.execute(
        """
        insert into side_calls (purpose, agent_id, conversation_id, run_id, provider, model, prompt_tokens,
            completion_tokens, cached_tokens, reasoning_tokens, cost_usd, cost_estimated)
        values (%s, %s, (select id from conversations where id = %s for key share),
            (select id from runs where id = %s for key share), %s, %s, %s, %s, %s, %s, %s, %s)
        """,
        (
            purpose,
            agent_id,
            conversation_id,
            run_id,
            provider,
            model,
            usage.prompt_tokens,
            usage.completion_tokens,
            usage.cached_tokens,
            usage.reasoning_tokens,
            cost_usd,
            estimated,
        ),
    )


async def keep_turns_of(connection: Connection, conversation_id: str) -> None:
    """Before a conversation is deleted: what its turns cost stays in the ledger, without a word of them."""
    await connection.execute(
        """
        insert into side_calls (at, purpose, agent_id, provider, model, prompt_tokens, completion_tokens,
            cached_tokens, reasoning_tokens, cost_usd, cost_estimated)
        select m.created_at, 'turn', c.agent_id, m.provider, m.model, m.prompt_tokens, m.completion_tokens,
            m.cached_tokens, m.reasoning_tokens, m.cost_usd, m.cost_estimated
        from messages m join conversations c on c.id = m.conversation_id
        where m.conversation_id = %s and m.role = 'assistant' and m.provider is not null
        """,
        (conversation_id,),
    )


async def entries(connection: Connection) -> int:
    """How many entries were ever made: unchanged means that the statistics are (TRN-333)."""
    cursor = await connection.execute("select coalesce(sum(calls), 0)::bigint as calls from spending")
    row = await cursor.fetchone()
    assert row is not None
    return int(row["calls"])


async def unpriced_today(connection: Connection, conversation_id: str) -> int:
    """Calls without a price in a conversation on the person's present day (FLD-018)."""
    cursor = await connection.execute(
        """
        select (
            select count(*) from messages
            where conversation_id = %(id)s and role = 'assistant' and provider is not null
                and cost_usd is null and created_at >= day.start
        ) + (
            select count(*) from side_calls
            where conversation_id = %(id)s and cost_usd is null and at >= day.start
        ) as calls
        from (select person_day()::timestamp at time zone person_zone() as start) day
        """,
        {"id": conversation_id},
    )
    row = await cursor.fetchone()
    assert row is not None
    return int(row["calls"])


async def statistics(connection: Connection, *, timezone: str) -> Statistics:
    """Add the ledger up; days are calendar days of `timezone` (TRN-332)."""
    cursor = await connection.execute(
        f"""
        with calls as ({_CALLS})
        select agent_id,
            coalesce(sum(prompt_tokens) filter (where cached_tokens is not null), 0)::bigint as prompt,
            coalesce(sum(cached_tokens), 0)::bigint as cached,
            count(*) filter (where prompt_tokens is not null and cached_tokens is null) as unknown
        from calls group by agent_id order by agent_id
        """  # noqa: S608 - constant parts
    )
    cache = await cursor.fetchall()
    return Statistics(
        days=await _totals(connection, timezone, "to_char(at at time zone %(zone)s, 'YYYY-MM-DD')"),
        models=await _totals(connection, timezone, "provider", "model"),
        purposes=await _totals(connection, timezone, "purpose"),
        by_agent=await _totals(connection, timezone, "agent_id"),
        cache_by_agent=[(row["agent_id"], row["prompt"], row["cached"]) for row in cache],
        unknown_cache_calls=sum(row["unknown"] for row in cache),
    )


async def _totals(connection: Connection, timezone: str, *groups: str) -> list[Total]:
    names = [f"name{n}" for n in range(len(groups))]
    selected = ", ".join(f"{group} as {name}" for group, name in zip(groups, names, strict=True))
    cursor = await connection.execute(
        f"with calls as ({_CALLS}) select {selected}, {_SUMS} from calls "  # noqa: S608 - constant parts
        f"group by {', '.join(names)} order by {', '.join(names)}",
        {"zone": timezone},
    )
    return [Total(names=tuple(row.pop(name) for name in names), **row) for row in await cursor.fetchall()]
