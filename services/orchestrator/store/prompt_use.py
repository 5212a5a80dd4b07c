"""What was cached of prompts in the last days, and what moved in them, added up from runs (FLD-012)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson

from services.orchestrator.store.pool import Connection

# Steps of model calls and compactions that ended, of the runs of the last days.
_STEPS = """
    select r.agent_id, s.kind, s.body
    from runs r join run_steps s on s.run_id = r.id
    where r.started_at >= now() - make_interval(days => %(days)s)
        and s.kind in ('model', 'compacted') and s.body->>'ms' is not null and s.body->>'error' is null
"""


@dataclass(frozen=True, slots=True)
class PromptUse:
    """The prompts of one agent."""

    agent_id: str
    calls: int
    # Of calls whose provider says how much it had cached.
    prompt_tokens: int
    cached_tokens: int
    compactions: int
    # How many calls a part had moved before.
    moved: Mapping[str, int] = field(default_factory=dict)


async def uses(connection: Connection, days: int) -> list[PromptUse]:
    """By agent; figures of runs that are not kept any more are missing."""
    cursor = await connection.execute(
        f"""
        with steps as materialized ({_STEPS}),
        moves as (
            select agent_id, part, count(*) as times
            from steps, json_array_elements_text(coalesce(body->'moved', '[]')) as part
            group by agent_id, part)
        select s.agent_id,
            count(*) filter (where kind = 'model') as calls,
            count(*) filter (where kind = 'compacted') as compactions,
            coalesce(sum((body->>'prompt_tokens')::bigint)
                filter (where kind = 'model' and body->>'cached_tokens' is not null), 0)::bigint as prompt,
            coalesce(sum((body->>'cached_tokens')::bigint)
                filter (where kind = 'model'), 0)::bigint as cached,
            (select json_object_agg(part, times)::text from moves m where m.agent_id = s.agent_id) as moved
        from steps s group by s.agent_id order by s.agent_id
        """,  # noqa: S608 - constant parts
        {"days": days},
    )
    return [
        PromptUse(
            agent_id=row["agent_id"],
            calls=row["calls"],
            prompt_tokens=row["prompt"],
            cached_tokens=row["cached"],
            compactions=row["compactions"],
            moved=orjson.loads(row["moved"] or "{}"),
        )
        for row in await cursor.fetchall()
    ]
