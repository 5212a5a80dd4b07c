"""What model calls cost: the ledger behind the statistics (TRN-264, TRN-266)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from services.orchestrator.store.pool import Connection
from services.orchestrator.store.records import Usage

Purpose = Literal[
    "tool_summary", "image", "pdf", "script", "transcribe", "consolidate", "title", "recap", "wiki",
    "compact", "route", "brief", "review", "verify", "relevance", "abandoned",
]  # fmt: skip

# One model call a row: the paid messages of the logs and every call outside them. Never runs, so
# that no call is counted twice.
_CALLS = """
    select m.created_at as at, c.agent_id, 'turn' as purpose, m.provider, m.model, m.prompt_tokens,
        m.completion_tokens, m.cached_tokens, m.cost_usd
    from messages m join conversations c on c.id = m.conversation_id
    where m.role = 'assistant' and m.provider is not null
    union all
    select at, agent_id, purpose, provider, model, prompt_tokens, completion_tokens, cached_tokens, cost_usd
    from side_calls
"""

_SUMS = """
    coalesce(sum(cost_usd), 0)::float8 as cost_usd, count(*) as calls,
    count(*) filter (where cost_usd is null) as unknown_cost_calls,
    coalesce(sum(prompt_tokens), 0)::bigint as prompt_tokens,
    coalesce(sum(completion_tokens), 0)::bigint as completion_tokens
"""


@dataclass(frozen=True, slots=True)
class Total:
    """Sums over the calls of one group; `names` say which group."""

    names: tuple[str, ...]
    cost_usd: float
    calls: int
    unknown_cost_calls: int
    prompt_tokens: int
    completion_tokens: int


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
) -> None:
    """Add a call made outside the loop, or one of the loop that was abandoned (TRN-267)."""
    await connection.execute(
        """
        insert into side_calls (purpose, agent_id, conversation_id, run_id, provider, model, prompt_tokens,
            completion_tokens, cached_tokens, reasoning_tokens, cost_usd)
        values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
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
        ),
    )


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
    return [
        Total(
            names=tuple(row[name] for name in names),
            cost_usd=row["cost_usd"],
            calls=row["calls"],
            unknown_cost_calls=row["unknown_cost_calls"],
            prompt_tokens=row["prompt_tokens"],
            completion_tokens=row["completion_tokens"],
        )
        for row in await cursor.fetchall()
    ]
