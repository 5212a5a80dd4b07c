"""JSON as the gateway writes it, built from the protos so that the scripted crew cannot drift from them."""

from __future__ import annotations

from typing import Any

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
from google.protobuf.descriptor import Descriptor, FieldDescriptor

_FILES = (
    agents_pb2,
    approvals_pb2,
    audit_pb2,
    auth_pb2,
    budgets_pb2,
    conversations_pb2,
    events_pb2,
    messages_pb2,
    notifications_pb2,
    runs_pb2,
    stats_pb2,
    system_pb2,
    tools_pb2,
    turns_pb2,
)


def _message(name: str) -> Descriptor:
    for module in _FILES:
        found = module.DESCRIPTOR.message_types_by_name.get(name)
        if found is not None:
            return found
    raise LookupError(name)


def _unset(field: FieldDescriptor) -> Any:
    if field.is_repeated:
        return []
    if field.has_presence:
        return None
    if field.type in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES):
        return {} if field.GetOptions().Extensions[options_pb2.raw_json] else ""
    return False if field.type == FieldDescriptor.TYPE_BOOL else 0


def shape(name: str, /, **values: Any) -> dict[str, Any]:
    """A message named `name` with `values` set and everything else as unset fields look.

    Raises:
        TypeError: A value names no field of the message.
    """
    fields = _message(name).fields_by_name
    unknown = values.keys() - fields.keys()
    if unknown:
        raise TypeError(f"{name} has no {', '.join(sorted(unknown))}")
    return {key: values.get(key, _unset(field)) for key, field in fields.items()}


def event(kind: str, /, **values: Any) -> dict[str, Any]:
    """One turn event as its SSE data."""
    field = events_pb2.TurnEvent.DESCRIPTOR.fields_by_name[kind]
    return {"type": kind, **shape(field.message_type.name, **values)}


def frame(kind: str, /, **values: Any) -> dict[str, Any]:
    """One frame of the activity stream as its SSE data."""
    field = runs_pb2.ActivityFrame.DESCRIPTOR.fields_by_name[kind]
    return {"type": kind, **shape(field.message_type.name, **values)}
