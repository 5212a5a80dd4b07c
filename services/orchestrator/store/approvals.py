"""Approvals and questions: a request is decided once."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import datetime

from psycopg.types.json import Json

from services.orchestrator.store import notifications
from services.orchestrator.store.pool import Connection, Row
from services.orchestrator.store.records import Approval, ApprovalKind, ApprovalStatus, Review

_COLUMNS = """
    id, conversation_id, agent_id, run_id, kind, tool, tool_call_id, arguments, arguments_sha256, reason,
    summary, preview, options, default_answer, answer, status, may_always, token, target_state, created_at,
    expires_at, decided_at, decided_by, review,
    (select delivery from notifications n where n.approval_id = approvals.id) as delivery
"""


async def create(
    connection: Connection,
    *,
    approval_id: str,
    conversation_id: str,
    agent_id: str,
    run_id: str,
    kind: ApprovalKind,
    tool: str,
    tool_call_id: str,
    arguments: str,
    arguments_sha256: bytes,
    reason: str,
    summary: str,
    preview: str,
    options: Sequence[str],
    default_answer: str | None,
    may_always: bool,
    token: str,
    target_state: str,
    review: Review | None,
    ttl_seconds: int,
) -> Approval:
    """Put a request before a person, with the notification that tells of it (FLD-024)."""
    cursor = await connection.execute(
        f"""
        insert into approvals (id, conversation_id, agent_id, run_id, kind, tool, tool_call_id, arguments,
            arguments_sha256, reason, summary, preview, options, default_answer, may_always, token,
            target_state, review, expires_at)
        values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s,
            now() + make_interval(secs => %s))
        returning {_COLUMNS}
        """,  # noqa: S608 - constant columns
        (
            approval_id,
            conversation_id,
            agent_id,
            run_id,
            kind,
            tool,
            tool_call_id,
            arguments,
            arguments_sha256,
            reason,
            summary,
            preview,
            list(options),
            default_answer,
            may_always,
            token,
            target_state,
            Json(dataclasses.asdict(review)) if review is not None else None,
            ttl_seconds,
        ),
    )
    row = await cursor.fetchone()
    assert row is not None
    approval = _approval(row)
    await notifications.ask(connection, approval)
    return dataclasses.replace(approval, delivery="waiting")


async def get(connection: Connection, approval_id: str) -> Approval | None:
    """The request, or None."""
    cursor = await connection.execute(
        f"select {_COLUMNS} from approvals where id = %s",  # noqa: S608 - constant columns
        (approval_id,),
    )
    row = await cursor.fetchone()
    return _approval(row) if row else None


async def last_status(connection: Connection, run_id: str, kind: ApprovalKind) -> ApprovalStatus | None:
    """What became of the newest request of a kind in a run; None when there was none."""
    cursor = await connection.execute(
        "select status from approvals where run_id = %s and kind = %s order by created_at desc limit 1",
        (run_id, kind),
    )
    row = await cursor.fetchone()
    status: ApprovalStatus | None = row["status"] if row else None
    return status


async def pending(connection: Connection, conversation_id: str) -> Approval | None:
    """The request that waits in a conversation, or None."""
    cursor = await connection.execute(
        f"select {_COLUMNS} from approvals where conversation_id = %s and status = 'pending'",  # noqa: S608 - constant columns
        (conversation_id,),
    )
    row = await cursor.fetchone()
    return _approval(row) if row else None


async def pending_among(connection: Connection, conversation_ids: list[str]) -> dict[str, Approval]:
    """The waiting requests of several conversations."""
    cursor = await connection.execute(
        f"select {_COLUMNS} from approvals where status = 'pending' and conversation_id = any(%s)",  # noqa: S608 - constant columns
        (conversation_ids,),
    )
    found = [_approval(row) for row in await cursor.fetchall()]
    return {approval.conversation_id: approval for approval in found}


async def all_pending(connection: Connection) -> list[Approval]:
    """Every waiting request, oldest first."""
    cursor = await connection.execute(
        f"select {_COLUMNS} from approvals where status = 'pending' order by created_at, id"  # noqa: S608 - constant columns
    )
    return [_approval(row) for row in await cursor.fetchall()]


async def decided(connection: Connection, *, limit: int) -> list[Approval]:
    """Decided requests, newest decision first (TRN-216)."""
    cursor = await connection.execute(
        f"select {_COLUMNS} from approvals where status <> 'pending' order by decided_at desc, id limit %s",  # noqa: S608 - constant columns
        (limit,),
    )
    return [_approval(row) for row in await cursor.fetchall()]


async def of_calls(
    connection: Connection, conversation_id: str, call_ids: Sequence[str]
) -> dict[str, Approval]:
    """The requests made for these calls, by call id."""
    cursor = await connection.execute(
        f"""
        select {_COLUMNS} from approvals where conversation_id = %s and tool_call_id = any(%s)
        order by created_at, id
        """,  # noqa: S608 - constant columns
        (conversation_id, list(call_ids)),
    )
    found = [_approval(row) for row in await cursor.fetchall()]
    return {approval.tool_call_id: approval for approval in found}


async def unbegun(
    connection: Connection, conversation_id: str, call_ids: Sequence[str]
) -> dict[str, Approval]:
    """The decided requests among these calls whose call has not begun, by call id (TRN-215).

    Of a call that was asked for twice, the later one (PIP-091).
    """
    cursor = await connection.execute(
        f"""
        select {_COLUMNS} from approvals
        where conversation_id = %s and tool_call_id = any(%s) and status <> 'pending' and started_at is null
        order by created_at, id
        """,  # noqa: S608 - constant columns
        (conversation_id, list(call_ids)),
    )
    found = [_approval(row) for row in await cursor.fetchall()]
    return {approval.tool_call_id: approval for approval in found}


async def settle(
    connection: Connection,
    approval_id: str,
    status: ApprovalStatus,
    *,
    decided_by: str,
    answer: str | None = None,
) -> Approval | None:
    """Decide a waiting request; None when it does not wait any more."""
    cursor = await connection.execute(
        f"""
        update approvals set status = %s, answer = %s, decided_at = now(), decided_by = %s
        where id = %s and status = 'pending' returning {_COLUMNS}
        """,  # noqa: S608 - constant columns
        (status, answer, decided_by, approval_id),
    )
    row = await cursor.fetchone()
    if row is None:
        return None
    await notifications.closed(connection, approval_id, by_person=status != "expired")
    return _approval(row)


async def overdue(connection: Connection, *, limit: int = 32) -> list[Approval]:
    """Waiting requests past their deadline, the oldest first."""
    cursor = await connection.execute(
        f"""
        select {_COLUMNS} from approvals where status = 'pending' and expires_at <= now()
        order by expires_at limit %s
        """,  # noqa: S608 - constant columns
        (limit,),
    )
    return [_approval(row) for row in await cursor.fetchall()]


async def next_deadline(connection: Connection) -> datetime | None:
    """When the next waiting request runs out of time, or None."""
    cursor = await connection.execute("select min(expires_at) as at from approvals where status = 'pending'")
    row = await cursor.fetchone()
    return row["at"] if row else None


async def mark_started(connection: Connection, conversation_id: str, tool_call_id: str) -> None:
    """The approved call begins now: from here on it may have run."""
    await connection.execute(
        """
        update approvals set started_at = coalesce(started_at, now())
        where conversation_id = %s and tool_call_id = %s
        """,
        (conversation_id, tool_call_id),
    )


def _approval(row: Row) -> Approval:
    return Approval(
        id=str(row["id"]),
        conversation_id=str(row["conversation_id"]),
        agent_id=row["agent_id"],
        run_id=str(row["run_id"]),
        kind=row["kind"],
        tool=row["tool"],
        tool_call_id=row["tool_call_id"],
        arguments=row["arguments"],
        arguments_sha256=bytes(row["arguments_sha256"]),
        reason=row["reason"],
        summary=row["summary"],
        preview=row["preview"],
        options=tuple(row["options"]),
        default_answer=row["default_answer"],
        answer=row["answer"],
        status=row["status"],
        may_always=row["may_always"],
        token=row["token"],
        target_state=row["target_state"],
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        decided_at=row["decided_at"],
        decided_by=row["decided_by"],
        review=Review(**row["review"]) if row["review"] else None,
        delivery=row["delivery"] or "",
    )
