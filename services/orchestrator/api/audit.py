"""The service crew.v1.Audit."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import grpc.aio
from crew.v1 import audit_pb2 as pb
from crew.v1 import audit_pb2_grpc

from services.common.errors import Invalid
from services.common.times import iso
from services.orchestrator.api.checks import id_of, limit_of
from services.orchestrator.store import audit
from services.orchestrator.store.pool import Database

Context = grpc.aio.ServicerContext[Any, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MOST_TEXT = 200


class AuditServicer(audit_pb2_grpc.AuditServicer):
    """The audit trail, to read alone.

    Args:
        database: Where it is.
        timezone: Of the days that are asked for.
    """

    def __init__(self, *, database: Database, timezone: str) -> None:
        self._database = database
        self._timezone = timezone

    async def List(self, request: pb.ListAuditRequest, context: Context) -> pb.ListAuditReply:
        """Newest first; the limit counts what the filters leave (PIP-112, PIP-156)."""
        limit = limit_of(request, default=100)
        conversation = request.conversation_id
        wanted = audit.Wanted(
            tool=request.tool or None,
            agent_id=request.agent_id or None,
            conversation_id=id_of("conversation", conversation) if conversation else None,
            day=_day(request.day) if request.day else None,
            text=_text(request.text) if request.text else None,
            reads=request.reads,
            before=_position(request.before) if request.before else None,
        )
        async with self._database.connection() as connection:
            found = await audit.newest(connection, wanted, timezone=self._timezone, limit=limit)
        return pb.ListAuditReply(entries=[_entry(entry) for entry in found])


def _entry(entry: audit.Entry) -> pb.AuditEntry:
    call, end = entry.call, entry.end
    return pb.AuditEntry(
        id=_written(entry.position),
        at=iso(entry.position.at),
        agent_id=call.agent_id,
        conversation_id=call.conversation_id,
        run_id=call.run_id,
        call_id=call.call_id,
        tool=call.tool,
        effect=call.effect,
        arguments_sha256=call.arguments_sha256.hex(),
        arguments_short=call.arguments_short,
        command=call.command,
        allowed_by=entry.allowed_by,
        rule=entry.rule,
        decided_by=entry.decided_by,
        result=entry.result,
        outcome=end.outcome if end else None,
        fault=end.fault if end else "",
        exit_code=end.exit_code if end else None,
        ms=end.ms if end else None,
        bytes_in=call.bytes_in,
        bytes_out=end.bytes_out if end else None,
        trace_id=call.trace_id,
        reviewed_by=call.reviewed_by or None,
    )


def _written(position: audit.Position) -> str:
    return f"{(position.at - _EPOCH) // _MICROSECOND}-{position.n}"


def _position(text: str) -> audit.Position:
    micros, _, n = text.partition("-")
    try:
        if not (micros.isascii() and micros.isdigit() and n.isascii() and n.isdigit() and len(text) <= 40):
            raise ValueError(text)
        position = audit.Position(_EPOCH + int(micros) * _MICROSECOND, int(n))
        if position.n >= 2**63:
            raise OverflowError(text)
    except (ValueError, OverflowError):
        raise Invalid("BAD_POSITION", "error.audit.bad_before") from None
    return position


def _day(text: str) -> date:
    try:
        day = date.fromisoformat(text)
        # The day behind it has to exist as well.
        day + timedelta(days=1)
    except (ValueError, OverflowError):
        raise Invalid("BAD_DAY", "error.audit.bad_day") from None
    return day


def _text(text: str) -> str:
    if len(text) > _MOST_TEXT or "\0" in text:
        raise Invalid("BAD_TEXT", "error.audit.bad_text", most=_MOST_TEXT)
    return text
