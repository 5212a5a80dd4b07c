"""The append-only record of what was let through and why (PIP-112)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Literal

import orjson

from services.orchestrator.store.pool import Connection, Row

Event = Literal["allowed", "ended", "withheld"]
Result = Literal["done", "failed", "not_run", "open"]


@dataclass(frozen=True, slots=True)
class AuditedCall:
    """Which call an entry is about."""

    agent_id: str
    conversation_id: str
    run_id: str
    call_id: str
    tool: str
    arguments_sha256: bytes
    # Shortened, with known secrets covered, as in all that follows.
    arguments_short: str
    # Of the tool; None: there is none, or it was not looked up.
    effect: str | None = None
    # The whole command of a shell's call.
    command: str | None = None
    # A path or an address; "" when the call names none.
    target: str = ""
    bytes_in: int = 0
    trace_id: str = ""
    # The route of the second model that judged it; "" when none did (PIP-103).
    reviewed_by: str = ""


@dataclass(frozen=True, slots=True)
class CallEnd:
    """What became of it."""

    ok: bool
    # None: it did not run.
    ms: int | None
    outcome: str
    fault: str = ""
    about: Sequence[str] = ()
    absent: bool = False
    exit_code: int | None = None
    bytes_out: int = 0


@dataclass(frozen=True, slots=True)
class NewEntry:
    """An entry before it has a place in the trail."""

    event: Event
    call: AuditedCall
    allowed_by: str
    rule: str = ""
    decided_by: str | None = None
    end: CallEnd | None = None


@dataclass(frozen=True, slots=True)
class Position:
    """Where an entry stands in the trail."""

    at: datetime
    n: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One call as the owner sees it: why it was let through, and how it ended."""

    position: Position
    call: AuditedCall
    allowed_by: str
    rule: str
    decided_by: str | None
    result: Result
    # None while the call is open.
    end: CallEnd | None


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which entries are asked for; None asks for all."""

    tool: str | None = None
    agent_id: str | None = None
    conversation_id: str | None = None
    day: date | None = None
    # Found in arguments or command, in either case.
    text: str | None = None
    # Calls that only read are left out, unless their tool is asked for.
    reads: bool = False
    before: Position | None = None


async def record(connection: Connection, entries: Sequence[NewEntry]) -> None:
    """Add entries, in order.

    `allowed` of a call that may change something is committed before the effect begins (I1).
    """
    if not entries:
        return
    await connection.execute(
        """
        insert into audit.calls (event, agent_id, conversation_id, run_id, call_id, tool, arguments_sha256,
            arguments_short, effect, command, target, bytes_in, trace_id, reviewed_by, allowed_by, rule,
            decided_by, ok, ms, outcome, fault, about, absent, exit_code, bytes_out)
        select event, agent_id, conversation_id, run_id, call_id, tool, decode(arguments_sha256, 'hex'),
            arguments_short, effect, command, target, bytes_in, trace_id, reviewed_by, allowed_by, rule,
            decided_by, ok, ms, outcome, fault, about, absent, exit_code, bytes_out
        from json_to_recordset(%s::json) as e(n integer, event text, agent_id text, conversation_id uuid,
            run_id uuid, call_id text, tool text, arguments_sha256 text, arguments_short text, effect text,
            command text, target text, bytes_in bigint, trace_id text, reviewed_by text, allowed_by text,
            rule text, decided_by text, ok boolean, ms bigint, outcome text, fault text, about text[],
            absent boolean, exit_code integer, bytes_out bigint)
        order by n
        """,
        (orjson.dumps([_fields(n, entry) for n, entry in enumerate(entries)]).decode(),),
    )


async def newest(connection: Connection, wanted: Wanted, *, timezone: str, limit: int) -> list[Entry]:
    """Entries, newest first: one a call that was let through or withheld, with its end beside it.

    A call that was let through, lost its process and was closed by the next one is one entry.

    Args:
        connection: To read with.
        wanted: Which.
        timezone: Of `wanted.day`.
        limit: The most.
    """
    cursor = await connection.execute(
        """
        select c.*, e.event as end_event, e.ok as end_ok, e.ms as end_ms, e.outcome as end_outcome,
            e.fault as end_fault, e.exit_code as end_exit_code, e.bytes_out as end_bytes_out
        from audit.calls c
        left join lateral (
            select * from audit.calls e
            where e.call_id = c.call_id and e.event <> 'allowed'
                and (e.at, e.id) >= (c.at, c.id)
            order by e.at, e.id limit 1
        ) e on true
        where (c.event = 'allowed' or c.event = 'withheld' and not exists (
                select from audit.calls p where p.call_id = c.call_id and p.event = 'allowed'))
            and (%(tool)s::text is null or c.tool = %(tool)s)
            and (%(reads)s or %(tool)s::text is not null or c.effect is distinct from 'read')
            and (%(agent)s::text is null or c.agent_id = %(agent)s)
            and (%(conversation)s::uuid is null or c.conversation_id = %(conversation)s)
            and (%(day)s::date is null
                or c.at >= (%(day)s::date)::timestamp at time zone %(zone)s
                and c.at < (%(day)s::date + 1)::timestamp at time zone %(zone)s)
            and (%(text)s::text is null
                or c.arguments_short ilike %(text)s or c.command ilike %(text)s)
            and (%(before_at)s::timestamptz is null or (c.at, c.id) < (%(before_at)s, %(before_n)s))
        order by c.at desc, c.id desc limit %(limit)s
        """,
        {
            "tool": wanted.tool,
            "reads": wanted.reads,
            "agent": wanted.agent_id,
            "conversation": wanted.conversation_id,
            "day": wanted.day,
            "zone": timezone,
            "text": _containing(wanted.text) if wanted.text else None,
            "before_at": wanted.before.at if wanted.before else None,
            "before_n": wanted.before.n if wanted.before else None,
            "limit": limit,
        },
    )
    return [_entry(row) for row in await cursor.fetchall()]


def _fields(n: int, entry: NewEntry) -> dict[str, Any]:
    call, end = entry.call, entry.end
    return {
        "n": n,
        "event": entry.event,
        "agent_id": call.agent_id,
        "conversation_id": call.conversation_id,
        "run_id": call.run_id,
        "call_id": call.call_id,
        "tool": call.tool,
        "arguments_sha256": call.arguments_sha256.hex(),
        "arguments_short": call.arguments_short,
        "effect": call.effect,
        "command": call.command,
        "target": call.target,
        "bytes_in": call.bytes_in,
        "trace_id": call.trace_id,
        "reviewed_by": call.reviewed_by,
        "allowed_by": entry.allowed_by,
        "rule": entry.rule,
        "decided_by": entry.decided_by,
        "ok": end.ok if end else None,
        "ms": end.ms if end else None,
        "outcome": end.outcome if end else None,
        "fault": end.fault if end else "",
        "about": list(end.about) if end else [],
        "absent": end.absent if end else False,
        "exit_code": end.exit_code if end else None,
        "bytes_out": end.bytes_out if end else None,
    }


def _containing(text: str) -> str:
    """A pattern for `ilike` in which every sign of `text` stands for itself."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def _entry(row: Row) -> Entry:
    return Entry(
        position=Position(row["at"], row["id"]),
        call=AuditedCall(
            agent_id=row["agent_id"],
            conversation_id=str(row["conversation_id"]),
            run_id=str(row["run_id"]),
            call_id=row["call_id"],
            tool=row["tool"],
            arguments_sha256=bytes(row["arguments_sha256"]),
            arguments_short=row["arguments_short"],
            effect=row["effect"],
            command=row["command"],
            target=row["target"],
            bytes_in=row["bytes_in"],
            trace_id=row["trace_id"],
            reviewed_by=row["reviewed_by"],
        ),
        allowed_by=row["allowed_by"],
        rule=row["rule"],
        decided_by=row["decided_by"],
        result=_result(row),
        end=_end(row),
    )


def _result(row: Row) -> Result:
    if row["end_event"] is None:
        return "open"
    if row["event"] == "withheld":
        return "done" if row["end_ok"] else "not_run"
    return "done" if row["end_ok"] else "failed"


def _end(row: Row) -> CallEnd | None:
    if row["end_event"] is None:
        return None
    return CallEnd(
        ok=row["end_ok"],
        ms=row["end_ms"],
        # Entries of an older program do not say.
        outcome=row["end_outcome"] or "unknown",
        fault=row["end_fault"],
        exit_code=row["end_exit_code"],
        bytes_out=row["end_bytes_out"] or 0,
    )
