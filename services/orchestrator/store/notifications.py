"""What the owner is told: each thing once, and whether anybody was shown it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import uuid4

from services.orchestrator.store.pool import Connection, Row
from services.orchestrator.store.records import Approval
from services.orchestrator.store.spending import Budget

CHANNEL = "crew_notifications"

Kind = Literal["trouble", "recovered", "approval", "budget"]
Delivery = Literal["waiting", "delivered", "not_delivered"]

_COLUMNS = """
    id, kind, cause, subject, text, approval_id, conversation_id, agent_id, created_at, read_at, over_at,
    delivery, delivered_by
"""


@dataclass(frozen=True, slots=True)
class Notification:
    """One thing the owner was told."""

    id: str
    kind: Kind
    cause: str
    subject: str
    text: str
    created_at: datetime
    read_at: datetime | None
    over_at: datetime | None
    approval_id: str | None
    conversation_id: str | None
    agent_id: str | None
    delivery: Delivery
    delivered_by: str | None


@dataclass(frozen=True, slots=True)
class LastCalls:
    """How the last calls of a tool ended."""

    tool: str
    # Why each failed, the newest first; "" for one that did not. Calls that say nothing of the tool
    # are left out: refused, or cancelled.
    faults: Sequence[str]
    # Of the last hour: ended by a limit of resources.
    limits: int


async def last_calls(connection: Connection, *, calls: int = 10, tools: int = 200) -> list[LastCalls]:
    """The last calls of every tool that failed lately or is in trouble."""
    cursor = await connection.execute(
        """
        with tools as (
            select distinct tool from audit.calls
            where event = 'ended' and fault <> '' and at > now() - interval '10 minutes'
            union
            select subject from notifications
            where kind = 'trouble' and cause <> 'host_down' and over_at is null
            limit %(tools)s
        )
        select t.tool, coalesce(last.faults, '{}') as faults,
            (select count(*) from audit.calls c
                where c.tool = t.tool and c.event = 'ended' and c.fault = 'limit'
                    and c.at > now() - interval '1 hour') as limits
        from tools t
        cross join lateral (
            select array_agg(c.fault order by c.at desc, c.id desc) as faults
            from (
                select at, id, fault from audit.calls
                where tool = t.tool and event = 'ended' and fault not in ('cancelled', 'refused')
                order by at desc, id desc limit %(calls)s
            ) c
        ) last
        order by t.tool
        """,
        {"tools": tools, "calls": calls},
    )
    return [LastCalls(row["tool"], row["faults"], row["limits"]) for row in await cursor.fetchall()]


async def begin_trouble(connection: Connection, cause: str, subject: str, text: str) -> bool:
    """Tell that something is in trouble; False when it is told already and not over (PIP-113)."""
    cursor = await connection.execute(
        """
        insert into notifications (id, kind, cause, subject, text) values (%s, 'trouble', %s, %s, %s)
        on conflict (cause, subject) where kind = 'trouble' and over_at is null do nothing
        """,
        (uuid4(), cause, subject, text),
    )
    return cursor.rowcount == 1


async def end_trouble(connection: Connection, cause: str, subject: str, text: str) -> bool:
    """Tell that a trouble is over; False when there is none. Call it in a transaction."""
    cursor = await connection.execute(
        """
        update notifications set over_at = now()
        where kind = 'trouble' and cause = %s and subject = %s and over_at is null
        """,
        (cause, subject),
    )
    if cursor.rowcount == 0:
        return False
    await connection.execute(
        """
        insert into notifications (id, kind, cause, subject, text, over_at)
        values (%s, 'recovered', %s, %s, %s, now())
        """,
        (uuid4(), cause, subject, text),
    )
    return True


async def open_troubles(connection: Connection) -> list[Notification]:
    """The troubles there are, the oldest first."""
    cursor = await connection.execute(
        f"""
        select {_COLUMNS} from notifications
        where kind = 'trouble' and over_at is null order by n
        """  # noqa: S608 - constant columns
    )
    return [_notification(row) for row in await cursor.fetchall()]


async def ask(connection: Connection, approval: Approval) -> None:
    """Tell that a request waits, in the transaction that makes it."""
    await connection.execute(
        """
        insert into notifications (id, kind, subject, text, approval_id, conversation_id, agent_id)
        values (%s, 'approval', %s, %s, %s, %s, %s)
        """,
        (
            uuid4(),
            approval.tool,
            approval.summary,
            approval.id,
            approval.conversation_id,
            approval.agent_id,
        ),
    )


async def closed(connection: Connection, approval_id: str, *, by_person: bool) -> None:
    """A request is settled. Whoever decided it has read of it; of one that ran out the owner has not."""
    await connection.execute(
        """
        update notifications
        set over_at = now(), read_at = case when %s then coalesce(read_at, now()) else read_at end
        where approval_id = %s and over_at is null
        """,
        (by_person, approval_id),
    )


async def tell_of_budget(
    connection: Connection, budget: Budget, *, cause: str, subject: str, text: str
) -> bool:
    """Tell how a budget stands; False when it was told of in its present day or month (FLD-016)."""
    cursor = await connection.execute(
        """
        with told as (
            insert into budget_notices (scope, scope_id, period, starts_on, notification_id)
            values (%(scope)s, %(scope_id)s, %(period)s, date_trunc(%(period)s, person_day())::date, %(id)s)
            on conflict do nothing
            returning notification_id
        )
        insert into notifications (id, kind, cause, subject, text, agent_id)
        select notification_id, 'budget', %(cause)s, %(subject)s, %(text)s, %(agent_id)s from told
        """,
        {
            "id": uuid4(),
            "scope": budget.scope,
            "scope_id": budget.id,
            "period": budget.period,
            "cause": cause,
            "subject": subject,
            "text": text,
            # A schedule's id begins with its agent's.
            "agent_id": budget.id.partition("/")[0] or None,
        },
    )
    return cursor.rowcount == 1


async def end_budgets(connection: Connection) -> int:
    """End what is told of budgets whose day or month is over, or that a person goes on past; how many.

    Whoever said to go on has read of it. Call it in a transaction.
    """
    cursor = await connection.execute(
        """
        with open as (
            select n.id, date_trunc(b.period, person_day())::date <= b.starts_on as lasts, a.go_on
            from notifications n
            join budget_notices b on b.notification_id = n.id
            left join budget_answers a on (a.scope, a.scope_id, a.period) = (b.scope, b.scope_id, b.period)
                and a.day = person_day()
            where n.kind = 'budget' and n.over_at is null
        )
        update notifications n set over_at = now() from open
        where n.id = open.id and n.over_at is null and (open.go_on or not open.lasts)
        returning n.id, open.go_on and open.lasts as known
        """
    )
    ended = await cursor.fetchall()
    if known := [str(row["id"]) for row in ended if row["known"]]:
        await mark_read(connection, known)
    return len(ended)


async def newest(connection: Connection, *, limit: int, unread: bool = False) -> list[Notification]:
    """Notifications, newest first."""
    cursor = await connection.execute(
        f"""
        select {_COLUMNS} from notifications
        where not %s or read_at is null order by n desc limit %s
        """,  # noqa: S608 - constant columns
        (unread, limit),
    )
    return [_notification(row) for row in await cursor.fetchall()]


async def get(connection: Connection, notification_id: str) -> Notification | None:
    """One notification, or None."""
    cursor = await connection.execute(
        f"select {_COLUMNS} from notifications where id = %s",  # noqa: S608 - constant columns
        (notification_id,),
    )
    row = await cursor.fetchone()
    return _notification(row) if row else None


async def unread(connection: Connection) -> int:
    """How many nobody has read."""
    cursor = await connection.execute("select count(*) as count from notifications where read_at is null")
    row = await cursor.fetchone()
    assert row is not None
    return int(row["count"])


async def mark_read(connection: Connection, ids: Sequence[str]) -> None:
    """Mark these as read; with none named, all there are. Ids that nothing has are passed over."""
    await connection.execute(
        """
        update notifications set read_at = now()
        where read_at is null and (cardinality(%(ids)s::uuid[]) = 0 or id = any(%(ids)s::uuid[]))
        """,
        {"ids": list(ids)},
    )


async def confirm(connection: Connection, ids: Sequence[str], surface: str) -> int:
    """A surface shows these, named by their own ids or those of their requests; how many waited."""
    cursor = await connection.execute(
        """
        update notifications set delivered_at = now(), delivered_by = %(surface)s
        where delivered_at is null and (id = any(%(ids)s::uuid[]) or approval_id = any(%(ids)s::uuid[]))
        """,
        {"ids": list(ids), "surface": surface},
    )
    return cursor.rowcount


async def give_up_overdue(connection: Connection) -> int:
    """Mark what no surface confirmed in time and no further channel takes (FLD-024); how many.

    What is over by then needs nobody's attention any more.
    """
    cursor = await connection.execute(
        """
        update notifications set undelivered_at = now()
        where delivered_at is null and undelivered_at is null and confirm_by <= now() and over_at is null
        """
    )
    return cursor.rowcount


def _notification(row: Row) -> Notification:
    return Notification(
        id=str(row["id"]),
        kind=row["kind"],
        cause=row["cause"],
        subject=row["subject"],
        text=row["text"],
        created_at=row["created_at"],
        read_at=row["read_at"],
        over_at=row["over_at"],
        approval_id=str(row["approval_id"]) if row["approval_id"] else None,
        conversation_id=str(row["conversation_id"]) if row["conversation_id"] else None,
        agent_id=row["agent_id"],
        delivery=row["delivery"],
        delivered_by=row["delivered_by"],
    )
