"""Claims: which process works on which conversation.

A row of `turns` is the claim. Its holder is named by (run_id, epoch); every write of a turn goes
through `hold`, so a process that was taken for dead and is not can write nothing any more.

Whoever locks a conversation and its claim takes the conversation first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.orchestrator.store import runs
from services.orchestrator.store.pool import Connection, Row
from services.orchestrator.store.runs import Run

LEASE_SECONDS = 15
# How long past its time a turn may take to end its running call and store the results.
OVERDUE_SECONDS = 30
# First key of the advisory locks that say which orchestrators live.
INSTANCE_LOCK = 0x63726577


class ClaimLost(Exception):
    """Another process took this turn over, or the conversation is gone: write nothing more."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to work on one conversation."""

    conversation_id: str
    run_id: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Standing:
    """How a conversation stands, for whoever wants to begin a turn on it."""

    # Of the run that works on it now.
    running: str | None
    # A person has to decide first.
    awaits_decision: bool
    # Messages wait in its queue.
    queued: bool
    # Number of its last message.
    last_seq: int
    # The log ends within a step: some of its calls may have no result.
    within_step: bool


async def standing(connection: Connection, conversation_id: str) -> Standing:
    """How the conversation stands; it exists, and is locked if the answer is to last."""
    cursor = await connection.execute(
        """
        select c.last_seq,
            (select run_id from turns where conversation_id = c.id) as running,
            exists (select from approvals where conversation_id = c.id and status = 'pending') as pending,
            exists (select from queued_messages where conversation_id = c.id) as queued,
            coalesce((select role = 'tool' or tool_calls is not null from messages
                where conversation_id = c.id and seq = c.last_seq), false) as within_step
        from conversations c where c.id = %s
        """,
        (conversation_id,),
    )
    row = await cursor.fetchone()
    assert row is not None, "the caller holds the conversation"
    running = str(row["running"]) if row["running"] else None
    return Standing(running, row["pending"], row["queued"], row["last_seq"], row["within_step"])


async def begin(
    connection: Connection,
    *,
    run_id: str,
    conversation_id: str,
    agent_id: str,
    source: str,
    after_seq: int,
    seconds_left: float | None,
    instance: int,
) -> tuple[Claim, Run] | None:
    """Create a run and take the conversation for it, or None when somebody works on it.

    Args:
        connection: Inside a transaction, which is to be given up on None.
        run_id: Of the new run.
        conversation_id: Of the conversation.
        agent_id: Whose turn it is.
        source: Of the message that opens it.
        after_seq: The last message before it.
        seconds_left: How long it may be worked on while nobody attends it; None: no limit (FLD-008).
        instance: Of the process that takes it.
    """
    cursor = await connection.execute(
        f"""
        with run as (
            insert into runs (id, conversation_id, agent_id, source, status, after_seq, seconds_left)
            values (%(run)s, %(conversation)s, %(agent)s, %(source)s, 'running', %(after)s, %(seconds)s)
            returning {runs.COLUMNS}
        ), claimed as (
            insert into turns (conversation_id, run_id, instance, epoch, lease_until, ends_at)
            select conversation_id, id, %(instance)s, nextval('turn_epochs'),
                now() + make_interval(secs => %(lease)s), now() + make_interval(secs => seconds_left)
            from run
            on conflict (conversation_id) do nothing
            returning epoch
        )
        select run.*, epoch from run, claimed
        """,  # noqa: S608 - constant columns
        {
            "run": run_id,
            "conversation": conversation_id,
            "agent": agent_id,
            "source": source,
            "after": after_seq,
            "seconds": seconds_left,
            "instance": instance,
            "lease": LEASE_SECONDS,
        },
    )
    row = await cursor.fetchone()
    return (Claim(conversation_id, run_id, row["epoch"]), runs.of_row(row)) if row else None


async def claim(connection: Connection, conversation_id: str, run_id: str, instance: int) -> Claim | None:
    """Take the conversation for a run, or None when somebody works on it.

    The time an unattended run has left begins to count (FLD-008).
    """
    cursor = await connection.execute(
        """
        insert into turns (conversation_id, run_id, instance, epoch, lease_until, ends_at)
        select %s, r.id, %s, nextval('turn_epochs'), now() + make_interval(secs => %s),
            now() + make_interval(secs => r.seconds_left)
        from runs r where r.id = %s
        on conflict (conversation_id) do nothing
        returning epoch
        """,
        (conversation_id, instance, LEASE_SECONDS, run_id),
    )
    row = await cursor.fetchone()
    return Claim(conversation_id, run_id, row["epoch"]) if row else None


async def hold(connection: Connection, claim: Claim) -> None:
    """Make sure that the claim still stands, for the rest of this transaction.

    Raises:
        ClaimLost: It does not.
    """
    cursor = await connection.execute(
        """
        select 1 from conversations c join turns t on t.conversation_id = c.id
        where c.id = %s and t.run_id = %s and t.epoch = %s for update of c, t
        """,
        (claim.conversation_id, claim.run_id, claim.epoch),
    )
    if await cursor.fetchone() is None:
        raise ClaimLost(claim.conversation_id)


async def release(connection: Connection, claim: Claim) -> None:
    """Give the conversation free.

    Raises:
        ClaimLost: The claim does not stand any more.
    """
    cursor = await connection.execute(
        """
        with held as (
            select t.conversation_id from conversations c join turns t on t.conversation_id = c.id
            where c.id = %s and t.run_id = %s and t.epoch = %s for update of c, t
        )
        delete from turns t using held h where t.conversation_id = h.conversation_id
        """,
        (claim.conversation_id, claim.run_id, claim.epoch),
    )
    if cursor.rowcount != 1:
        raise ClaimLost(claim.conversation_id)


async def seconds_left(connection: Connection, claim: Claim) -> float | None:
    """How long the turn may still run; None when somebody attends it. Never negative."""
    cursor = await connection.execute(
        """
        select greatest(0, extract(epoch from ends_at - now()))::float8 as seconds
        from turns where conversation_id = %s and ends_at is not null
        """,
        (claim.conversation_id,),
    )
    row = await cursor.fetchone()
    return row["seconds"] if row else None


async def keep_time_left(connection: Connection, claim: Claim) -> None:
    """Before a wait for a person: what is left is the run's again, so the wait is not counted."""
    await connection.execute(
        """
        update runs r set seconds_left = greatest(0, extract(epoch from t.ends_at - now()))
        from turns t
        where t.conversation_id = %s and t.epoch = %s and t.ends_at is not null and r.id = t.run_id
        """,
        (claim.conversation_id, claim.epoch),
    )


async def running(connection: Connection, conversation_id: str) -> str | None:
    """The id of the run that works on the conversation now, or None."""
    cursor = await connection.execute(
        "select run_id from turns where conversation_id = %s", (conversation_id,)
    )
    row = await cursor.fetchone()
    return str(row["run_id"]) if row else None


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A turn that another orchestrator runs."""

    run_id: str
    # Where that one is reached.
    address: str


async def elsewhere(connection: Connection, conversation_id: str, instance: int) -> Elsewhere | None:
    """The turn of a conversation that another orchestrator than `instance` runs, if it can be reached."""
    cursor = await connection.execute(
        """
        select t.run_id, o.address from turns t join orchestrators o on o.instance = t.instance
        where t.conversation_id = %s and t.instance <> %s and o.address <> ''
        """,
        (conversation_id, instance),
    )
    row = await cursor.fetchone()
    return Elsewhere(str(row["run_id"]), row["address"]) if row else None


async def running_among(connection: Connection, conversation_ids: list[str]) -> set[str]:
    """Those of the conversations that are worked on now."""
    cursor = await connection.execute(
        "select conversation_id from turns where conversation_id = any(%s)", (conversation_ids,)
    )
    return {str(row["conversation_id"]) for row in await cursor.fetchall()}


async def renew(connection: Connection, instance: int, working_on: Sequence[str]) -> None:
    """Extend the leases of what an instance works on; its other claims run out (TRN-147)."""
    await connection.execute(
        """
        update turns set lease_until = now() + make_interval(secs => %s)
        where instance = %s and conversation_id = any(%s)
        """,
        (LEASE_SECONDS, instance, list(working_on)),
    )


async def drop(connection: Connection, claim: Claim, *, stop: bool) -> None:
    """End the lease of a claim that is not worked on any more, so that it is taken over at once.

    Args:
        connection: To the database.
        claim: If it does not stand any more, nothing happens.
        stop: The turn is to be closed, not gone on with: a person had stopped it.
    """
    await connection.execute(
        """
        update turns set lease_until = now(), stop_requested = stop_requested or %s
        where conversation_id = %s and run_id = %s and epoch = %s
        """,
        (stop, claim.conversation_id, claim.run_id, claim.epoch),
    )


async def request_stop(connection: Connection, conversation_id: str) -> bool:
    """Ask whoever runs the turn to stop it; False when none runs."""
    cursor = await connection.execute(
        "update turns set stop_requested = true where conversation_id = %s", (conversation_id,)
    )
    return cursor.rowcount == 1


async def stops_requested(connection: Connection, instance: int) -> list[str]:
    """The conversations of an instance whose turn a person asked to stop elsewhere."""
    cursor = await connection.execute(
        "select conversation_id from turns where instance = %s and stop_requested", (instance,)
    )
    return [str(row["conversation_id"]) for row in await cursor.fetchall()]


@dataclass(frozen=True, slots=True)
class Taken:
    """A claim that was taken from its owner, and why the turn is not to go on, if so."""

    claim: Claim
    # A person had asked to stop it.
    stop_requested: bool
    # Nobody attends it and its time is up (FLD-008).
    overdue: bool


async def take_over(
    connection: Connection, instance: int, *, working_on: Sequence[str] = (), limit: int = 8
) -> list[Taken]:
    """Claim turns whose owner is dead (its advisory lock is free), hung or let go (its lease ran out).

    A turn that nobody attends is taken away from a living owner too, this instance included, when it
    is `OVERDUE_SECONDS` past its time.

    Args:
        connection: Inside a transaction or alone.
        instance: Who takes them.
        working_on: Conversations whose turns run in this instance, never taken over from itself.
        limit: Most at once.
    """
    cursor = await connection.execute(
        """
        with orphaned as (
            select t.conversation_id from turns t
            where t.ends_at < now() - make_interval(secs => %(overdue)s)
                or t.conversation_id <> all(%(working_on)s::uuid[]) and (
                    t.lease_until <= now()
                    or t.instance <> %(instance)s and not exists (
                        select from pg_locks l
                        where l.locktype = 'advisory' and l.classid = %(lock)s and l.objid = t.instance
                            and l.objsubid = 2 and l.granted
                            and l.database = (select oid from pg_database where datname = current_database())
                    )
                )
            order by t.epoch limit %(limit)s
            for update skip locked
        )
        update turns t
        set instance = %(instance)s, epoch = nextval('turn_epochs'),
            lease_until = now() + make_interval(secs => %(lease)s)
        from orphaned o where t.conversation_id = o.conversation_id
        returning t.conversation_id, t.run_id, t.epoch, t.stop_requested,
            coalesce(t.ends_at < now(), false) as overdue
        """,
        {
            "instance": instance,
            "working_on": list(working_on),
            "lock": INSTANCE_LOCK,
            "limit": limit,
            "lease": LEASE_SECONDS,
            "overdue": OVERDUE_SECONDS,
        },
    )
    return [Taken(_claim(row), row["stop_requested"], row["overdue"]) for row in await cursor.fetchall()]


async def hand_to_run(connection: Connection, claim: Claim, run_id: str) -> Claim:
    """Put another run in the place of the one that was cut off.

    Raises:
        ClaimLost: The claim does not stand any more.
    """
    cursor = await connection.execute(
        """
        update turns set run_id = %s, stop_requested = false
        where conversation_id = %s and run_id = %s and epoch = %s
        """,
        (run_id, claim.conversation_id, claim.run_id, claim.epoch),
    )
    if cursor.rowcount != 1:
        raise ClaimLost(claim.conversation_id)
    return Claim(claim.conversation_id, run_id, claim.epoch)


def _claim(row: Row) -> Claim:
    return Claim(str(row["conversation_id"]), str(row["run_id"]), row["epoch"])
