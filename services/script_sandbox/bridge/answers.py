"""From the orchestrator's answer to what the program goes on with (SCR-263)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from crew.v1 import script_sandbox_pb2 as pb

from services.script_sandbox.bridge.faults import CallerGone, ProtocolFault


@dataclass(frozen=True, slots=True)
class Value:
    """The program goes on with plain data."""

    value: Any


@dataclass(frozen=True, slots=True)
class Failure:
    """The program goes on with a ToolError."""

    text: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """The program stops at that line."""

    text: str


Reply = Value | Failure | Refusal

_EXPECTED = {
    "tool_call": "call_result",
    "batch_call": "batch_result",
    "lookup": "lookup_result",
    "ask_model": "model_result",
    "open_store": "store_snapshot",
}


def reply_to(request: pb.FromSandbox, answer: pb.ToSandbox) -> Reply:
    """Read an answer.

    Raises:
        CallerGone: It cancels the script.
        ProtocolFault: It is of another kind or number, or does not fit the request.
    """
    kind = answer.WhichOneof("message")
    if kind == "cancel":
        raise CallerGone
    asked = request.WhichOneof("message") or ""
    if kind is None or kind not in (_EXPECTED.get(asked), "refuse"):
        raise ProtocolFault(f"{kind} answers {asked}")
    if getattr(answer, kind).seq != getattr(request, asked).seq:
        raise ProtocolFault("another number")
    match kind:
        case "refuse":
            return Refusal(answer.refuse.text)
        case "call_result":
            return _told(answer.call_result.ok, answer.call_result.text)
        case "batch_result":
            return _batch(request.batch_call, answer.batch_result)
        case "lookup_result":
            found = answer.lookup_result
            return Value(found.value_json) if found.ok else Failure(found.error)
        case "model_result":
            return _model(request.ask_model, answer.model_result)
        case _:
            return _store(answer.store_snapshot)


def _told(ok: bool, text: str) -> Reply:
    return Value(text) if ok else Failure(text)


def _batch(asked: pb.BatchCallRequest, answer: pb.BatchResult) -> Reply:
    if len(answer.items) != len(asked.items):
        raise ProtocolFault("another number of items")
    return Value([[item.ok, item.text] for item in answer.items])


def _model(asked: pb.AskModelRequest, answer: pb.ModelResult) -> Reply:
    # SCR-148: a script never receives a string outside its labels.
    if answer.ok and asked.kind == pb.QUESTION_KIND_CLASSIFY and answer.text not in asked.labels:
        raise ProtocolFault("no label")
    return _told(answer.ok, answer.text)


def _store(answer: pb.StoreSnapshot) -> Reply:
    return Value([[[entry.key, entry.json] for entry in answer.entries], answer.used_chars])
