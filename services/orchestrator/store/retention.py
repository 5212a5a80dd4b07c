"""The end of what has been kept long enough (FLD-052), removed in batches that hold no lock for long.

Nothing unfinished is ever touched: a run that works or waits, its steps and its requests stay.
"""

from __future__ import annotations

import asyncio

from services.orchestrator.store.pool import Connection, Database

BATCH = 500
# Between two batches, so that the turns of people come first.
_PAUSE_SECONDS = 0.05

# The steps go with their run; messages and the ledger stay and only forget which run they were of.
_RUNS = """
with old as (
    select id from runs r
    where finished_at < now() - make_interval(days => %(days)s)
        and status in ('done', 'halted', 'error')
        and not exists (select from turns t where t.run_id = r.id)
        and not exists (select from approvals a where a.run_id = r.id and a.status = 'pending')
    order by finished_at limit %(batch)s for update skip locked
)
delete from runs using old where runs.id = old.id
"""
_APPROVALS = """
with old as (
    select a.id from approvals a
    where a.status <> 'pending' and a.decided_at < now() - make_interval(days => %(days)s)
        and not exists (
            select from runs r where r.id = a.run_id and r.status in ('running', 'awaiting_approval'))
    order by a.decided_at limit %(batch)s for update skip locked
)
delete from approvals using old where approvals.id = old.id
"""
# What is still open stays, however long it has been told.
_NOTIFICATIONS = """
with old as (
    select id from notifications
    where over_at is not null and created_at < now() - make_interval(days => %(days)s)
    order by created_at limit %(batch)s for update skip locked
)
delete from notifications using old where notifications.id = old.id
"""
_SESSIONS = """
with old as (select id from sessions where expires_at < now() limit %(batch)s for update skip locked)
delete from sessions using old where sessions.id = old.id
"""
# An expired token is shown as such for as long as other records are kept.
_TOKENS = """
with old as (
    select id from api_tokens where expires_at < now() - make_interval(days => %(days)s)
    limit %(batch)s for update skip locked
)
delete from api_tokens using old where api_tokens.id = old.id
"""
_SETUP_TOKENS = """
with old as (
    select secret_sha256 from setup_tokens where expires_at < now() limit %(batch)s for update skip locked
)
delete from setup_tokens using old where setup_tokens.secret_sha256 = old.secret_sha256
"""
_SWEEPS = {
    "approvals": _APPROVALS,
    "runs": _RUNS,
    "notifications": _NOTIFICATIONS,
    "sessions": _SESSIONS,
    "api_tokens": _TOKENS,
    "setup_tokens": _SETUP_TOKENS,
}


async def sweep(database: Database, *, days: int, batch: int = BATCH) -> dict[str, int]:
    """Remove what ended more than `days` days ago, and credentials that let nobody in any more.

    Several processes may do this at once: each row is removed by one of them.

    Returns:
        How many rows of each table were removed; their steps are not counted.
    """
    removed = dict.fromkeys(_SWEEPS, 0)
    for table, statement in _SWEEPS.items():
        while True:
            async with database.transaction() as connection:
                count = await _remove(connection, statement, days, batch)
            removed[table] += count
            if count < batch:
                break
            await asyncio.sleep(_PAUSE_SECONDS)
    return removed


async def _remove(connection: Connection, statement: str, days: int, batch: int) -> int:
    cursor = await connection.execute(statement, {"days": days, "batch": batch})
    return cursor.rowcount
