"""Write ``src/api/contract.ts``: the JSON shapes the gateway answers with, from the protos.

Run from the repository root; ``--check`` only says whether the committed file is what would be written.
The mapping is the gateway's: snake_case names, ``null`` for an unset optional or message, raw JSON inline,
and one event type for each member of a oneof, with its name under ``type``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from crew.v1 import (
    agents_pb2,
    approvals_pb2,
    audit_pb2,
    auth_pb2,
    budgets_pb2,
    conversations_pb2,
    events_pb2,
    messages_pb2,
    notifications_pb2,
    options_pb2,
    runs_pb2,
    stats_pb2,
    system_pb2,
    tools_pb2,
    turns_pb2,
)

TARGET = Path(__file__).resolve().parent.parent / "src" / "api" / "contract.ts"

ANSWERS: tuple[type[Message], ...] = (
    conversations_pb2.Conversation,
    conversations_pb2.ForkConversationReply,
    messages_pb2.MessageHit,
    approvals_pb2.Approval,
    runs_pb2.Run,
    notifications_pb2.ListNotificationsReply,
    notifications_pb2.MarkNotificationsReadReply,
    agents_pb2.Agent,
    agents_pb2.AgentPrompt,
    audit_pb2.AuditEntry,
    stats_pb2.ToolStatsReply,
    tools_pb2.Tool,
    system_pb2.HealthReply,
    system_pb2.ConnectionsReply,
    system_pb2.SettingsReply,
    system_pb2.StatsReply,
    budgets_pb2.BudgetsReply,
    auth_pb2.TokenInfo,
    auth_pb2.CreatedToken,
    turns_pb2.StopReply,
)
STREAMS = {"TurnEvent": (events_pb2.TurnEvent, "event"), "ActivityFrame": (runs_pb2.ActivityFrame, "frame")}

NUMBERS = {
    FieldDescriptor.TYPE_DOUBLE,
    FieldDescriptor.TYPE_FLOAT,
    FieldDescriptor.TYPE_INT32,
    FieldDescriptor.TYPE_INT64,
    FieldDescriptor.TYPE_UINT32,
    FieldDescriptor.TYPE_UINT64,
}


def field_type(field: FieldDescriptor) -> str:
    """The TypeScript type of one field."""
    if field.GetOptions().Extensions[options_pb2.raw_json]:
        return "Json"
    if field.type == FieldDescriptor.TYPE_MESSAGE:
        name = field.message_type.name
        return f"{name}[]" if field.is_repeated else f"{name} | null"
    if field.type == FieldDescriptor.TYPE_BOOL:
        name = "boolean"
    elif field.type in NUMBERS:
        name = "number"
    else:
        name = "string"
    if field.is_repeated:
        return f"{name}[]"
    nullable = field.has_presence and not field.GetOptions().Extensions[options_pb2.omit_unset]
    return f"{name} | null" if nullable else name


def key(field: FieldDescriptor) -> str:
    """The name of one field, marked when its key may be missing."""
    return f"{field.name}?" if field.GetOptions().Extensions[options_pb2.omit_unset] else field.name


def collect(message: Descriptor, found: dict[str, Descriptor]) -> None:
    """Add `message` and everything it holds to `found`."""
    if message.name in found:
        return
    found[message.name] = message
    for field in message.fields:
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            collect(field.message_type, found)


def render() -> str:
    """The whole file as text."""
    found: dict[str, Descriptor] = {}
    for answer in ANSWERS:
        collect(answer.DESCRIPTOR, found)
    unions: list[str] = []
    for name, (stream, oneof) in STREAMS.items():
        members = stream.DESCRIPTOR.oneofs_by_name[oneof].fields
        for member in members:
            collect(member.message_type, found)
        lines = "\n".join(f'  | ({{ type: "{m.name}" }} & {m.message_type.name})' for m in members)
        unions.append(f"export type {name} =\n{lines};\n")

    parts = [
        "// Written by scripts/contract_types.py from protos/crew/v1. Do not edit.\n",
        "export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };\n",
    ]
    for name in sorted(found):
        fields = found[name].fields
        if not fields:
            parts.append(f"export type {name} = Record<never, never>;\n")
            continue
        body = "\n".join(f"  {key(field)}: {field_type(field)};" for field in fields)
        parts.append(f"export interface {name} {{\n{body}\n}}\n")
    return "\n".join(parts + unions)


def main() -> int:
    """Write the file, or with ``--check`` compare it."""
    text = render()
    if "--check" in sys.argv[1:]:
        if TARGET.read_text(encoding="utf-8") == text:
            return 0
        sys.stderr.write("src/api/contract.ts is stale: run scripts/contract_types.py\n")
        return 1
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
