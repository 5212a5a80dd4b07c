"""The log of a conversation: it only grows at its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from services.common.toolhost.contract import Outcome
from services.orchestrator.store.pool import Connection, Row
from services.orchestrator.store.records import Author, Message, Role, StoredCall, Usage

# JSON columns are read as text: parsing them would cost time and digits.
_COLUMNS = """
    id, conversation_id, seq, role, author, content, tool_calls::text, tool_call_id, name, provider, model,
    cost_usd::float8, cost_estimated, prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens,
    is_error, details::text, context::text, opaque::text, run_id, opens_turn, created_at
"""

# Of the newest calls of one conversation whose outcome is not known; a turn asks for them at each step.
_MOST_UNKNOWN = 500


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message before it has a place in the log."""

    role: Role
    author: Author
    content: str
    run_id: str | None
    tool_calls: Sequence[StoredCall] = ()
    tool_call_id: str | None = None
    name: str | None = None
    provider: str | None = None
    model: str | None = None
    cost_usd: float | None = None
    cost_estimated: bool = False
    usage: Usage = field(default_factory=Usage)
    is_error: bool = False
    details: str | None = None
    context: str | None = None
    opaque: str | None = None
    # Of the call that a tool message answers.
    outcome: Outcome | None = None
    arguments_sha256: bytes | None = None
    # The first message of a turn: turns are numbered by these.
    opens_turn: bool = False


async def append(
    connection: Connection, conversation_id: str, messages: Sequence[NewMessage], *, touch: bool = True
) -> list[Message]:
    """Put messages at the end of the log, numbered without gaps.

    Args:
        connection: Inside a transaction; the conversation's row is locked by the numbering.
        conversation_id: Whose log.
        messages: In order.
        touch: Whether the conversation counts as changed now (TRN-015).
    """
    if not messages:
        return []
    cursor = await connection.execute(
        """
        with grown as (
            update conversations
            set last_seq = last_seq + %(count)s,
                updated_at = case when %(touch)s then now() else updated_at end
            where id = %(id)s returning last_seq - %(count)s as before
        )
        insert into messages (conversation_id, seq, role, author, content, tool_calls, tool_call_id, name,
            provider, model, cost_usd, cost_estimated, prompt_tokens, completion_tokens, cached_tokens,
            reasoning_tokens, is_error, details, context, opaque, run_id, outcome, arguments_sha256,
            opens_turn)
        select %(id)s, before + n, role, author, content, tool_calls::json, tool_call_id, name,
            provider, model, cost_usd, cost_estimated, prompt_tokens, completion_tokens, cached_tokens,
            reasoning_tokens, is_error, details::json, context::json, opaque::json, run_id, outcome,
            decode(arguments_sha256, 'hex'), opens_turn
        from grown, json_to_recordset(%(messages)s::json) as m(n integer, role text, author text,
            content text, tool_calls text, tool_call_id text, name text, provider text, model text,
            cost_usd numeric, cost_estimated boolean, prompt_tokens bigint, completion_tokens bigint,
            cached_tokens bigint, reasoning_tokens bigint, is_error boolean,
            details text, context text, opaque text, run_id uuid, outcome text,
            arguments_sha256 text, opens_turn boolean)
        order by n
        returning id, seq, created_at
        """,
        {
            "count": len(messages),
            "touch": touch,
            "id": conversation_id,
            "messages": orjson.dumps([_fields(n, each) for n, each in enumerate(messages, 1)]).decode(),
        },
    )
    places = sorted(await cursor.fetchall(), key=lambda row: row["seq"])
    assert len(places) == len(messages), "the caller holds the conversation"
    return [_appended(conversation_id, row, message) for row, message in zip(places, messages, strict=True)]


async def log(connection: Connection, conversation_id: str) -> list[Message]:
    """The whole log, in order: what a prompt is made of."""
    cursor = await connection.execute(
        f"select {_COLUMNS} from messages where conversation_id = %s order by seq",  # noqa: S608 - constant columns
        (conversation_id,),
    )
    return [_message(row) for row in await cursor.fetchall()]


async def between(
    connection: Connection, conversation_id: str, after_seq: int, last_seq: int | None
) -> list[Message]:
    """The log behind `after_seq`, up to and with `last_seq`; None: to its end."""
    cursor = await connection.execute(
        f"""
        select {_COLUMNS} from messages
        where conversation_id = %s and seq > %s and seq <= coalesce(%s, 2147483647) order by seq
        """,  # noqa: S608 - constant columns
        (conversation_id, after_seq, last_seq),
    )
    return [_message(row) for row in await cursor.fetchall()]


async def during(
    connection: Connection, conversation_id: str, begin: datetime, end: datetime | None
) -> list[Message]:
    """What was stored in a time; None: until now."""
    cursor = await connection.execute(
        f"""
        select {_COLUMNS} from messages
        where conversation_id = %s and created_at >= %s and created_at <= coalesce(%s, now()) order by seq
        """,  # noqa: S608 - constant columns
        (conversation_id, begin, end),
    )
    return [_message(row) for row in await cursor.fetchall()]


async def page(
    connection: Connection, conversation_id: str, *, limit: int, before_seq: int | None
) -> tuple[list[Message], bool]:
    """The newest `limit` messages before a place, in order, and whether older ones exist (FLD-075)."""
    cursor = await connection.execute(
        f"""
        select {_COLUMNS} from messages
        where conversation_id = %(id)s and (%(before)s::int is null or seq < %(before)s)
        order by seq desc limit %(limit)s
        """,  # noqa: S608 - constant columns
        {"id": conversation_id, "before": before_seq, "limit": limit + 1},
    )
    rows = await cursor.fetchall()
    return [_message(row) for row in reversed(rows[:limit])], len(rows) > limit


async def find(connection: Connection, message_id: int) -> Message | None:
    """The message of this id, whatever its conversation."""
    cursor = await connection.execute(
        f"select {_COLUMNS} from messages where id = %s",  # noqa: S608 - constant columns
        (message_id,),
    )
    row = await cursor.fetchone()
    return _message(row) if row else None


async def copy_before(connection: Connection, source_id: str, target_id: str, before_seq: int) -> None:
    """Copy the beginning of a log into an empty one, numbered from 1 without gaps (TRN-026).

    Provider, price and tokens are left out, so that no total of the ledger changes (TRN-027); what a
    provider needs back with its message names itself for whom it is.
    """
    await connection.execute(
        """
        with copied as (
            insert into messages (conversation_id, seq, role, author, content, tool_calls, tool_call_id, name,
                model, is_error, details, context, opaque, opens_turn, created_at)
            select %(target)s, row_number() over (order by seq), role, author, content, tool_calls,
                tool_call_id, name, model, is_error, details, context, opaque, opens_turn, created_at
            from messages where conversation_id = %(source)s and seq < %(before)s
            order by seq
            returning seq
        )
        update conversations set last_seq = (select count(*) from copied) where id = %(target)s
        """,
        {"source": source_id, "target": target_id, "before": before_seq},
    )


async def last_seq(connection: Connection, conversation_id: str) -> int:
    """Number of the last message; 0 for an empty log."""
    cursor = await connection.execute("select last_seq from conversations where id = %s", (conversation_id,))
    row = await cursor.fetchone()
    return int(row["last_seq"]) if row else 0


async def ends_in_part_of_a_reply(connection: Connection, conversation_id: str) -> bool:
    """Whether the log ends with what a reply had said before it broke off: no provider has charged it."""
    cursor = await connection.execute(
        """
        select m.role = 'assistant' and m.provider is null and m.tool_calls is null
            and r.status in ('error', 'halted') as part
        from messages m left join runs r on r.id = m.run_id
        where m.conversation_id = %s order by m.seq desc limit 1
        """,
        (conversation_id,),
    )
    row = await cursor.fetchone()
    return bool(row and row["part"])


async def open_calls(connection: Connection, conversation_id: str) -> list[StoredCall]:
    """The calls of the last assistant message that have no result yet, in the order written."""
    cursor = await connection.execute(
        f"""
        select {_COLUMNS} from messages
        where conversation_id = %(id)s and seq >= (
            select seq from messages where conversation_id = %(id)s and role = 'assistant'
            order by seq desc limit 1)
        order by seq
        """,  # noqa: S608 - constant columns
        {"id": conversation_id},
    )
    return open_among([_message(row) for row in await cursor.fetchall()])


async def unknown_outcomes(connection: Connection, conversation_id: str) -> list[tuple[str, bytes]]:
    """Calls of a conversation that may have taken effect, as tool and digest of the arguments (FLD-084).

    A call that began is known by the arguments that the audit trail says it began with, since whoever
    closed it after a restart knew only what the model wrote. One of the same arguments that ended since
    with a known result makes its outcome known.
    """
    cursor = await connection.execute(
        """
        with unknown as (
            select m.seq, m.name, coalesce(a.arguments_sha256, m.arguments_sha256) as digest
            from messages m
            left join lateral (
                select arguments_sha256 from audit.calls
                where call_id = m.tool_call_id and event = 'allowed' limit 1) a on true
            where m.conversation_id = %(id)s and m.outcome = 'unknown'
            order by m.seq desc limit %(most)s
        )
        select distinct name, digest from unknown u
        where digest is not null and not exists (
            select from messages d
            where d.conversation_id = %(id)s and d.seq > u.seq and d.name = u.name
                and d.outcome = 'done' and d.arguments_sha256 = u.digest)
        """,
        {"id": conversation_id, "most": _MOST_UNKNOWN},
    )
    return [(row["name"], bytes(row["digest"])) for row in await cursor.fetchall()]


def open_among(log: Sequence[Message]) -> list[StoredCall]:
    """The calls of the last assistant message of `log` that have no result in it."""
    answered: set[str | None] = set()
    for message in reversed(log):
        if message.role == "tool":
            answered.add(message.tool_call_id)
        elif message.role == "assistant":
            return [call for call in message.tool_calls if call.id not in answered]
    return []


def _fields(n: int, message: NewMessage) -> dict[str, Any]:
    """A message as `append` hands it over; JSON columns travel as text, so that they stay as written."""
    digest = message.arguments_sha256
    return {
        "n": n,
        "role": message.role,
        "author": message.author,
        "content": message.content,
        "tool_calls": _calls_json(message.tool_calls),
        "tool_call_id": message.tool_call_id,
        "name": message.name,
        "provider": message.provider,
        "model": message.model,
        "cost_usd": message.cost_usd,
        "cost_estimated": message.cost_estimated,
        "prompt_tokens": message.usage.prompt_tokens,
        "completion_tokens": message.usage.completion_tokens,
        "cached_tokens": message.usage.cached_tokens,
        "reasoning_tokens": message.usage.reasoning_tokens,
        "is_error": message.is_error,
        "details": message.details,
        "context": message.context,
        "opaque": message.opaque,
        "run_id": message.run_id,
        "outcome": message.outcome,
        "arguments_sha256": digest.hex() if digest is not None else None,
        "opens_turn": message.opens_turn,
    }


def _appended(conversation_id: str, row: Row, message: NewMessage) -> Message:
    return Message(
        id=row["id"],
        conversation_id=conversation_id,
        seq=row["seq"],
        role=message.role,
        author=message.author,
        content=message.content,
        created_at=row["created_at"],
        run_id=message.run_id,
        tool_calls=message.tool_calls,
        tool_call_id=message.tool_call_id,
        name=message.name,
        provider=message.provider,
        model=message.model,
        cost_usd=message.cost_usd,
        cost_estimated=message.cost_estimated,
        usage=message.usage,
        is_error=message.is_error,
        details=message.details or "{}",
        context=message.context,
        opaque=message.opaque,
        opens_turn=message.opens_turn,
    )


def _calls_json(calls: Sequence[StoredCall]) -> str | None:
    if not calls:
        return None
    return orjson.dumps([_call_fields(call) for call in calls]).decode()


def _call_fields(call: StoredCall) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "id": call.id,
        "name": call.name,
        "arguments": call.arguments,
        "provider_id": call.provider_id,
    }
    if call.broken is not None:
        fields["broken"] = call.broken
    if call.cut_off:
        fields["cut_off"] = True
    return fields


def _calls(text: str) -> list[StoredCall]:
    return [StoredCall(**fields) for fields in orjson.loads(text)]


def _message(row: Row) -> Message:
    return Message(
        id=row["id"],
        conversation_id=str(row["conversation_id"]),
        seq=row["seq"],
        role=row["role"],
        author=row["author"],
        content=row["content"],
        created_at=row["created_at"],
        run_id=str(row["run_id"]) if row["run_id"] else None,
        tool_calls=_calls(row["tool_calls"]) if row["tool_calls"] else (),
        tool_call_id=row["tool_call_id"],
        name=row["name"],
        provider=row["provider"],
        model=row["model"],
        cost_usd=row["cost_usd"],
        cost_estimated=row["cost_estimated"],
        usage=Usage(
            prompt_tokens=row["prompt_tokens"],
            completion_tokens=row["completion_tokens"],
            cached_tokens=row["cached_tokens"],
            reasoning_tokens=row["reasoning_tokens"],
        ),
        is_error=row["is_error"],
        details=row["details"] or "{}",
        context=row["context"],
        opaque=row["opaque"],
        opens_turn=row["opens_turn"],
    )
