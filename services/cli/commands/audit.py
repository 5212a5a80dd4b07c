"""``crew audit``: what agents did, why it was let through and how it ended (PIP-112, PIP-156)."""

from __future__ import annotations

import argparse
import asyncio
import json

import grpc
from crew.v1 import audit_pb2, audit_pb2_grpc
from google.protobuf import json_format

from services.cli import orchestrator
from services.cli.texts import complain, language, say, texts
from services.common.shown_text import shown

_LIMIT = 50
_NOT_RUN = frozenset({"refused", "denied", "expired", "failed", "asked"})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to look for."""
    words = texts()
    for name in ("tool", "agent", "conversation", "day", "text"):
        parser.add_argument(f"--{name}", help=words.text(language(), f"cli.audit.{name}"))
    parser.add_argument("--limit", type=int, default=_LIMIT, help=words.text(language(), "cli.audit.limit"))
    for name in ("reads", "json"):
        parser.add_argument(
            f"--{name}", action="store_true", help=words.text(language(), f"cli.audit.{name}")
        )


def run(arguments: argparse.Namespace) -> int:
    """Ask and print.

    Raises:
        StartError: No crew is running in this home.
    """
    request = audit_pb2.ListAuditRequest(
        tool=arguments.tool,
        agent_id=arguments.agent,
        conversation_id=arguments.conversation,
        day=arguments.day,
        text=arguments.text,
        limit=arguments.limit,
        reads=arguments.reads,
    )
    try:
        entries = asyncio.run(_entries(request))
    except grpc.aio.AioRpcError as error:
        complain(error.details() or error.code().name)
        return 1
    if not entries and not arguments.json:
        say("cli.audit.nothing")
    for entry in entries:
        print(_json(entry) if arguments.json else _shown(entry))
    return 0


async def _entries(request: audit_pb2.ListAuditRequest) -> list[audit_pb2.AuditEntry]:
    async with orchestrator.channel() as channel:
        reply = await audit_pb2_grpc.AuditStub(channel).List(request, metadata=orchestrator.spoken())
    return list(reply.entries)


def _json(entry: audit_pb2.AuditEntry) -> str:
    tree = json_format.MessageToDict(entry, preserving_proto_field_name=True)
    return json.dumps(tree, ensure_ascii=False)


def _shown(entry: audit_pb2.AuditEntry) -> str:
    """An entry on a few lines; what a model wrote moves no cursor and starts no entry of its own."""
    words = texts()
    ran = entry.allowed_by not in _NOT_RUN
    allowed = ", ".join(filter(None, (entry.allowed_by, entry.decided_by or entry.rule)))
    heading = words.text(
        language(),
        "cli.audit.heading" if ran else "cli.audit.heading_withheld",
        at=entry.at,
        agent=entry.agent_id,
        tool=_on_one_line(entry.tool),
        allowed=_on_one_line(allowed),
        result=_result(entry),
    )
    what = entry.command if entry.HasField("command") else entry.arguments_short
    about = words.text(language(), "cli.audit.about", what=shown(what, language()).replace("\n", "\n    "))
    run_line = words.text(language(), "cli.audit.run", run=entry.run_id, call=entry.call_id)
    return "\n".join((heading, about, run_line))


def _on_one_line(text: str) -> str:
    return " ".join(shown(text, language()).split())


def _result(entry: audit_pb2.AuditEntry) -> str:
    words = texts()
    result = words.text(language(), f"cli.audit.result.{entry.result}")
    if entry.HasField("ms"):
        result = words.text(language(), "cli.audit.took", result=result, ms=entry.ms)
        if entry.HasField("exit_code"):
            result = words.text(language(), "cli.audit.exit", result=result, code=entry.exit_code)
        result = words.text(language(), "cli.audit.size", result=result, bytes=entry.bytes_out)
    return result
