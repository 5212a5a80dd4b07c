"""Runs and their steps: the stored record of every turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import orjson

from services.orchestrator.store.pool import Connection, Row
from services.orchestrator.store.records import RunStatus

COLUMNS = """
    id, n, conversation_id, agent_id, source, status, summary, after_seq, model_calls, cost_usd::float8,
    unknown_cost_calls, recoveries, started_at, finished_at, seconds_left
"""


@dataclass(frozen=True, slots=True)
class Run:
    """One turn's record without its steps."""

    id: str
    n: int
    conversation_id: str
    agent_id: str
    source: str
    status: RunStatus
    summary: str
    # Number of the last message before it; None: it marked no place.
    after_seq: int | None
    model_calls: int
    cost_usd: float
    unknown_cost_calls: int
    recoveries: int
    started_at: datetime
    finished_at: datetime | None
    # How long it may be worked on while nobody attends it, from its next claim on; None: no limit
    # (FLD-008). While it is worked on, the claim's end counts instead.
    seconds_left: float | None


async def create(
    connection: Connection,
    *,
    run_id: str,
    conversation_id: str,
    agent_id: str,
    source: str,
    after_seq: int,
    model_calls: int = 0,
    recoveries: int = 0,
    recovered_from: str | None = None,
    seconds_left: float | None = None,
) -> Run:
    """Begin a run; `seconds_left` is how long it may be worked on while nobody attends it (FLD-008)."""
    cursor = await connection.execute(
        f"""
        insert into runs (id, conversation_id, agent_id, source, status, after_seq, model_calls, recoveries,
            recovered_from, seconds_left)
        values (%s, %s, %s, %s, 'running', %s, %s, %s, %s, %s) returning {COLUMNS}
        """,  # noqa: S608 - constant columns
        (
            run_id,
            conversation_id,
            agent_id,
            source,
            after_seq,
            model_calls,
            recoveries,
            recovered_from,
            seconds_left,
        ),
    )
    row = await cursor.fetchone()
    assert row is not None
    return of_row(row)


async def get(connection: Connection, run_id: str) -> Run | None:
    """The run, or None."""
    cursor = await connection.execute(f"select {COLUMNS} from runs where id = %s", (run_id,))  # noqa: S608 - constant columns
    row = await cursor.fetchone()
    return of_row(row) if row else None


async def lineage(connection: Connection, run_id: str) -> set[str]:
    """The run and those whose places it took, one after the other, when their processes died."""
    cursor = await connection.execute(
        """
        with recursive before as (
            select id, recovered_from from runs where id = %s
            union
            select r.id, r.recovered_from from runs r join before b on r.id = b.recovered_from
        )
        select id from before
        """,
        (run_id,),
    )
    return {str(row["id"]) for row in await cursor.fetchall()}


async def newest(
    connection: Connection,
    *,
    agent_id: str | None,
    conversation_id: str | None,
    status: str | None,
    limit: int,
    before: int | None = None,
) -> list[Run]:
    """Runs, newest first, narrowed in the query; a conversation's include its children's (TRN-292).

    `before` is the `n` of a run, which need not be there any more: only older ones.
    """
    cursor = await connection.execute(
        f"""
        select {COLUMNS} from runs
        where (%(agent)s::text is null or agent_id = %(agent)s)
            and (%(conversation)s::uuid is null or conversation_id = %(conversation)s
                 or source = 'delegate:' || %(conversation)s)
            and (%(status)s::text is null or status = %(status)s)
            and (%(before)s::bigint is null or n < %(before)s)
        order by n desc limit %(limit)s
        """,  # noqa: S608 - constant columns
        {
            "agent": agent_id,
            "conversation": conversation_id,
            "status": status,
            "before": before,
            "limit": limit,
        },
    )
    return [of_row(row) for row in await cursor.fetchall()]


def as_listed(found: Sequence[Run]) -> list[Run]:
    """Newest start first; of one second those that go on, then the later end, then the newer (GTW-092).

    Starts are whole seconds, and so are ends here: what shares both keeps the order of creation
    (TRN-291).
    """

    def key(run: Run) -> tuple[float, bool, float, int]:
        end = run.finished_at.timestamp() // 1 if run.finished_at else 0.0
        return run.started_at.timestamp(), run.finished_at is None, end, run.n

    return sorted(found, key=key, reverse=True)


async def unfinished(connection: Connection) -> list[Run]:
    """Runs that are running or wait for a person, oldest first."""
    cursor = await connection.execute(
        f"select {COLUMNS} from runs where status in ('running', 'awaiting_approval') order by n"  # noqa: S608 - constant columns
    )
    return [of_row(row) for row in await cursor.fetchall()]


async def add(
    connection: Connection,
    run_id: str,
    *,
    model_calls: int = 0,
    cost_usd: float | None = None,
    unknown_calls: int = 0,
) -> None:
    """Count a model call and what was spent."""
    await connection.execute(
        """
        update runs set model_calls = model_calls + %s, cost_usd = cost_usd + %s,
            unknown_cost_calls = unknown_cost_calls + %s
        where id = %s
        """,
        (model_calls, cost_usd or 0, unknown_calls, run_id),
    )


async def set_status(connection: Connection, run_id: str, status: RunStatus, summary: str = "") -> None:
    """Pause a run, take it up again, or end it."""
    await connection.execute(
        """
        update runs set status = %(status)s, summary = %(summary)s,
            finished_at = case when %(status)s in ('done', 'halted', 'error') then now() end
        where id = %(id)s
        """,
        {"id": run_id, "status": status, "summary": summary},
    )


async def close_unowned(connection: Connection) -> list[str]:
    """Close runs that nobody works on and nothing can continue (TRN-157, TRN-159).

    Returns:
        The ids of the runs that were closed.
    """
    cursor = await connection.execute(
        """
        update runs r set status = 'error', summary = 'interrupted', finished_at = now()
        where (r.status = 'running' and not exists (select from turns t where t.run_id = r.id))
           or (r.status = 'awaiting_approval'
               and not exists (select from turns t where t.run_id = r.id)
               and not exists (
                    select from approvals a
                    where a.run_id = r.id and a.conversation_id = r.conversation_id and a.status = 'pending'))
        returning id
        """
    )
    return [str(row["id"]) for row in await cursor.fetchall()]


async def close_of_conversation(connection: Connection, conversation_id: str) -> list[str]:
    """Close the unfinished runs of a conversation that goes away (TRN-018).

    Returns:
        The ids of the runs that were closed.
    """
    cursor = await connection.execute(
        """
        update runs set status = 'error', summary = 'interrupted', finished_at = now()
        where conversation_id = %s and status in ('running', 'awaiting_approval') returning id
        """,
        (conversation_id,),
    )
    return [str(row["id"]) for row in await cursor.fetchall()]


async def next_mark(connection: Connection, run: Run) -> int | None:
    """Where the next run of the same conversation begins; None when there is none (TRN-310)."""
    cursor = await connection.execute(
        """
        select after_seq from runs
        where conversation_id = %s and n > %s and after_seq is not null order by n limit 1
        """,
        (run.conversation_id, run.n),
    )
    row = await cursor.fetchone()
    return row["after_seq"] if row else None


async def delegated(connection: Connection, run: Run, call_ids: Sequence[str]) -> list[Run]:
    """The runs that calls of `run` delegated, oldest first (TRN-311).

    Told by both ends: the source names the run's conversation, and the child was opened by one of
    the calls.
    """
    cursor = await connection.execute(
        f"""
        select {COLUMNS} from runs
        where source = 'delegate:' || %s and conversation_id in (
            select id from conversations where parent_conversation_id = %s and parent_call_id = any(%s))
        order by n
        """,  # noqa: S608 - constant columns
        (run.conversation_id, run.conversation_id, list(call_ids)),
    )
    return [of_row(row) for row in await cursor.fetchall()]


async def put_steps(connection: Connection, run_id: str, steps: Sequence[tuple[int, str, str]]) -> None:
    """Write steps, or what became of them.

    Args:
        connection: To the database.
        run_id: Whose steps.
        steps: Number, kind and JSON text of a crew.v1.RunStep; each number once.
    """
    if not steps:
        return
    told = [{"n": n, "kind": kind, "body": body} for n, kind, body in steps]
    await connection.execute(
        """
        insert into run_steps (run_id, n, kind, body)
        select %s, n, kind, body::json
        from json_to_recordset(%s::json) as s(n integer, kind text, body text)
        on conflict (run_id, n) do update set kind = excluded.kind, body = excluded.body
        """,
        (run_id, orjson.dumps(told).decode()),
    )


async def steps(connection: Connection, run_ids: Sequence[str]) -> dict[str, list[str]]:
    """The steps of runs as JSON texts, in order."""
    cursor = await connection.execute(
        "select run_id, body::text from run_steps where run_id = any(%s) order by run_id, n", (list(run_ids),)
    )
    found: dict[str, list[str]] = {run_id: [] for run_id in run_ids}
    for row in await cursor.fetchall():
        found[str(row["run_id"])].append(row["body"])
    return found


async def next_step(connection: Connection, run_id: str) -> int:
    """The number of the step after the last one of a run."""
    cursor = await connection.execute(
        "select coalesce(max(n) + 1, 0) as n from run_steps where run_id = %s", (run_id,)
    )
    row = await cursor.fetchone()
    assert row is not None
    return int(row["n"])


def of_row(row: Row) -> Run:
    """A run from its `COLUMNS`."""
    return Run(
        id=str(row["id"]),
        n=row["n"],
        conversation_id=str(row["conversation_id"]),
        agent_id=row["agent_id"],
        source=row["source"],
        status=row["status"],
        summary=row["summary"],
        after_seq=row["after_seq"],
        model_calls=row["model_calls"],
        cost_usd=row["cost_usd"],
        unknown_cost_calls=row["unknown_cost_calls"],
        recoveries=row["recoveries"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        seconds_left=row["seconds_left"],
    )
