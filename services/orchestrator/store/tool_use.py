"""What tools did in the last days, added up from the audit trail (PIP-111, PIP-154).

The trail has a row for each call that ended, found by its time through the primary key: nothing is
counted while calls run, and every process sees the same figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from services.orchestrator.store.pool import Connection, Row

# Of one list of counted names, the most frequent.
_MOST_NAMES = 20

_ENDED = """
    select * from audit.calls
    where event <> 'allowed' and at >= now() - make_interval(days => %(days)s)
"""

_REFUSED = "(allowed_by in ('refused', 'denied', 'expired') or fault = 'refused')"


@dataclass(frozen=True, slots=True)
class ToolUse:
    """The calls of one tool by one agent."""

    tool: str
    agent_id: str
    calls: int
    refusals: int
    # Of calls that ran; None when none did.
    p50_ms: int | None
    p95_ms: int | None
    max_ms: int | None
    bytes_in: int
    bytes_out: int
    # How many failed, by kind.
    failures: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class DescriptionFaults:
    """What points to a poor description of one tool."""

    tool: str
    parameters: dict[str, int] = field(default_factory=dict)
    unknown_names: dict[str, int] = field(default_factory=dict)
    absent: int = 0
    followed_by: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """By which tools are sorted."""
        counted = (self.parameters, self.unknown_names, self.followed_by)
        return self.absent + sum(sum(counts.values()) for counts in counted)


async def uses(connection: Connection, days: int) -> list[ToolUse]:
    """The calls of the last `days` times 24 hours, by tool and agent."""
    cursor = await connection.execute(
        f"""
        with ended as ({_ENDED}),
        failed as (
            select tool, agent_id, jsonb_object_agg(fault, n) as failures from (
                select tool, agent_id, fault, count(*) as n from ended
                where fault not in ('', 'refused') and not {_REFUSED}
                group by tool, agent_id, fault
            ) kinds group by tool, agent_id
        )
        select tool, agent_id, count(*) as calls, count(*) filter (where {_REFUSED}) as refusals,
            percentile_disc(0.5) within group (order by ms) as p50,
            percentile_disc(0.95) within group (order by ms) as p95,
            max(ms) as longest, sum(bytes_in)::bigint as bytes_in,
            coalesce(sum(bytes_out), 0)::bigint as bytes_out,
            (select f.failures from failed f where f.tool = ended.tool and f.agent_id = ended.agent_id)
        from ended
        -- Names that models made up are no tools.
        where fault <> 'unknown_tool' group by tool, agent_id order by tool, agent_id
        """,  # noqa: S608 - constant parts
        {"days": days},
    )
    return [
        ToolUse(
            tool=row["tool"],
            agent_id=row["agent_id"],
            calls=row["calls"],
            refusals=row["refusals"],
            p50_ms=row["p50"],
            p95_ms=row["p95"],
            max_ms=row["longest"],
            bytes_in=row["bytes_in"],
            bytes_out=row["bytes_out"],
            failures=row["failures"] or {},
        )
        for row in await cursor.fetchall()
    ]


async def description_faults(connection: Connection, days: int) -> list[DescriptionFaults]:
    """What misled models in the last `days` times 24 hours, the worst tool first."""
    found: dict[str, DescriptionFaults] = {}

    def of(row: Row) -> DescriptionFaults:
        return found.setdefault(row["tool"], DescriptionFaults(row["tool"]))

    for row in await _counted(
        connection,
        "select tool, parameter as name, count(*) as n from ended, unnest(about) parameter "
        "where fault = 'arguments' and effect is not null group by 1, 2",
        days,
    ):
        of(row).parameters[row["name"]] = row["n"]
    for row in await _counted(
        connection,
        "select about[1] as tool, tool as name, count(*) as n from ended "
        "where fault = 'unknown_tool' and cardinality(about) > 0 group by 1, 2",
        days,
    ):
        of(row).unknown_names[row["name"]] = row["n"]
    for row in await _counted(
        connection, "select tool, '' as name, count(*) as n from ended where absent group by 1, 2", days
    ):
        of(row).absent = row["n"]
    for row in await _counted(
        connection,
        """
        select tool, next_tool as name, count(*) as n from (
            select tool, target, lead(tool) over following as next_tool,
                lead(target) over following as next_target
            from ended where effect is not null
            window following as (partition by run_id order by at, id)
        ) pairs where target <> '' and next_target = target and next_tool <> tool group by 1, 2
        """,
        days,
    ):
        of(row).followed_by[row["name"]] = row["n"]
    return sorted(found.values(), key=lambda faults: (-faults.total, faults.tool))


async def _counted(connection: Connection, query: str, days: int) -> list[Row]:
    """Rows of `query` over the ended calls, of each tool those with the most frequent names."""
    cursor = await connection.execute(
        f"""
        with ended as ({_ENDED}), counted as ({query})
        select * from (
            select *, row_number() over (partition by tool order by n desc, name) as place from counted
        ) ranked where place <= {_MOST_NAMES} order by tool, place
        """,  # noqa: S608 - constant parts
        {"days": days},
    )
    return await cursor.fetchall()
