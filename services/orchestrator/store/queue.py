"""Messages that wait for a running turn, and what senders called theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.orchestrator.store.pool import Connection, Row
from services.orchestrator.store.records import QueueKind

QUEUE_LIMIT = 20


@dataclass(frozen=True, slots=True)
class QueuedItem:
    """A waiting message; `position` counts from 1 within its conversation."""

    id: int
    kind: QueueKind
    position: int
    text: str
    source: str


@dataclass(frozen=True, slots=True)
class KnownRequest:
    """A message a sender named, and where it went."""

    text_sha256: bytes
    run_id: str | None
    item_id: int | None


async def waiting(connection: Connection, conversation_id: str) -> list[QueuedItem]:
    """What waits, in order of arrival."""
    cursor = await connection.execute(
        """
        select id, kind, text, source, row_number() over (order by id) as position
        from queued_messages where conversation_id = %s order by id
        """,
        (conversation_id,),
    )
    return [_item(row) for row in await cursor.fetchall()]


async def waiting_among(connection: Connection, conversation_ids: list[str]) -> dict[str, list[QueuedItem]]:
    """What waits in each of several conversations."""
    cursor = await connection.execute(
        """
        select conversation_id, id, kind, text, source,
            row_number() over (partition by conversation_id order by id) as position
        from queued_messages where conversation_id = any(%s) order by id
        """,
        (conversation_ids,),
    )
    found: dict[str, list[QueuedItem]] = {}
    for row in await cursor.fetchall():
        found.setdefault(str(row["conversation_id"]), []).append(_item(row))
    return found


async def put(
    connection: Connection, conversation_id: str, *, kind: QueueKind, text: str, source: str
) -> QueuedItem | None:
    """Add a message, or None when `QUEUE_LIMIT` wait already (TRN-064). The conversation is locked."""
    cursor = await connection.execute(
        """
        insert into queued_messages (conversation_id, kind, text, source)
        select %(id)s, %(kind)s, %(text)s, %(source)s
        where (select count(*) from queued_messages where conversation_id = %(id)s) < %(limit)s
        returning id, kind, text, source,
            (select count(*) + 1 from queued_messages where conversation_id = %(id)s) as position
        """,
        {"id": conversation_id, "kind": kind, "text": text, "source": source, "limit": QUEUE_LIMIT},
    )
    row = await cursor.fetchone()
    return _item(row) if row else None


async def take(
    connection: Connection, conversation_id: str, *, kind: QueueKind | None = None
) -> list[QueuedItem]:
    """Remove and return what waits, all of it or one kind, in order."""
    cursor = await connection.execute(
        """
        with taken as (
            delete from queued_messages
            where conversation_id = %(id)s and (%(kind)s::text is null or kind = %(kind)s)
            returning id, kind, text, source
        )
        select id, kind, text, source, row_number() over (order by id) as position from taken order by id
        """,
        {"id": conversation_id, "kind": kind},
    )
    return [_item(row) for row in await cursor.fetchall()]


async def any_steer(connection: Connection, conversation_id: str) -> bool:
    """Whether a steer message waits."""
    cursor = await connection.execute(
        "select exists (select from queued_messages where conversation_id = %s and kind = 'steer') as any",
        (conversation_id,),
    )
    row = await cursor.fetchone()
    return bool(row and row["any"])


async def drainable(connection: Connection, *, limit: int = 16) -> list[str]:
    """Conversations whose messages wait for nobody, the longest-waiting first (TRN-082)."""
    cursor = await connection.execute(
        """
        select q.conversation_id from queued_messages q
        where not exists (select from turns t where t.conversation_id = q.conversation_id)
            and not exists (
                select from approvals a where a.conversation_id = q.conversation_id and a.status = 'pending')
        group by q.conversation_id order by min(q.id) limit %s
        """,
        (limit,),
    )
    return [str(row["conversation_id"]) for row in await cursor.fetchall()]


async def known_request(connection: Connection, conversation_id: str, request_id: str) -> KnownRequest | None:
    """What became of an earlier message of that name."""
    cursor = await connection.execute(
        """
        select text_sha256, run_id, item_id from message_requests
        where conversation_id = %s and request_id = %s
        """,
        (conversation_id, request_id),
    )
    row = await cursor.fetchone()
    if row is None:
        return None
    return KnownRequest(
        bytes(row["text_sha256"]), str(row["run_id"]) if row["run_id"] else None, row["item_id"]
    )


async def name_request(
    connection: Connection,
    conversation_id: str,
    request_id: str,
    text_sha256: bytes,
    *,
    run_id: str | None = None,
    item_id: int | None = None,
) -> None:
    """Remember a message's name, in the transaction that stores the message (GTW-081)."""
    await connection.execute(
        """
        insert into message_requests (conversation_id, request_id, text_sha256, run_id, item_id)
        values (%s, %s, %s, %s, %s)
        """,
        (conversation_id, request_id, text_sha256, run_id, item_id),
    )


async def requests_answered_by(
    connection: Connection, conversation_id: str, item_ids: Sequence[int], run_id: str
) -> None:
    """The waiting messages were moved into this run."""
    await connection.execute(
        "update message_requests set run_id = %s, item_id = null "
        "where conversation_id = %s and item_id = any(%s)",
        (run_id, conversation_id, list(item_ids)),
    )


async def requests_moved(
    connection: Connection, conversation_id: str, from_run_id: str, to_run_id: str
) -> None:
    """What one run was to answer, another one answers."""
    await connection.execute(
        "update message_requests set run_id = %s where conversation_id = %s and run_id = %s",
        (to_run_id, conversation_id, from_run_id),
    )


async def forget_requests(connection: Connection, conversation_id: str, item_ids: Sequence[int]) -> None:
    """The waiting messages were handed back: their names are free again (GTW-082)."""
    await connection.execute(
        "delete from message_requests where conversation_id = %s and item_id = any(%s)",
        (conversation_id, list(item_ids)),
    )


def _item(row: Row) -> QueuedItem:
    return QueuedItem(
        id=row["id"], kind=row["kind"], position=row["position"], text=row["text"], source=row["source"]
    )
