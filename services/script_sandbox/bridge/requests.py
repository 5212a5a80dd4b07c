"""From what a program called `__host` with to the message of the request (SCR-261)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from crew.v1 import script_sandbox_pb2 as pb

from services.script_sandbox.bridge.faults import ProtocolFault
from services.script_sandbox.engine.outcomes import Asked

_LOOKUPS = {
    "names": pb.LOOKUP_KIND_NAMES,
    "search": pb.LOOKUP_KIND_SEARCH,
    "describe": pb.LOOKUP_KIND_DESCRIBE,
}
_QUESTIONS = {"classify": pb.QUESTION_KIND_CLASSIFY, "summarise": pb.QUESTION_KIND_SUMMARISE}
_INT32 = 2**31


def request_message(seq: int, asked: Asked) -> pb.FromSandbox:
    """The message of a request.

    Args:
        seq: Its number, from 1 over all kinds.
        asked: As the worker sent it.

    Raises:
        ProtocolFault: It is no request of the prelude.
    """
    kind = asked.arguments[0] if asked.arguments else None
    maker = _MAKERS.get(kind) if isinstance(kind, str) else None
    if maker is None:
        raise ProtocolFault("unknown request")
    try:
        return maker(seq, *asked.arguments)
    except (TypeError, ValueError):
        raise ProtocolFault(f"malformed {kind}") from None


def line_of(request: pb.FromSandbox) -> int:
    """The line a request was made on."""
    return int(getattr(request, request.WhichOneof("message") or "").line)


def _tool(seq: int, _kind: str, line: object, name: object, text: object) -> pb.FromSandbox:
    call = pb.ToolCallRequest(seq=seq, line=_number(line), name=_text(name), args_json=_text(text))
    return pb.FromSandbox(tool_call=call)


def _batch(seq: int, _kind: str, line: object, items: object) -> pb.FromSandbox:
    if not isinstance(items, list):
        raise TypeError("items")
    made = [pb.BatchItem(name=_text(name), args_json=_text(text)) for name, text in items]
    return pb.FromSandbox(batch_call=pb.BatchCallRequest(seq=seq, line=_number(line), items=made))


def _lookup(seq: int, kind: str, line: object, text: object, limit: object) -> pb.FromSandbox:
    request = pb.LookupRequest(
        seq=seq, line=_number(line), kind=_LOOKUPS[kind], text=_text(text), limit=_number(limit)
    )
    return pb.FromSandbox(lookup=request)


def _question(
    seq: int, kind: str, line: object, text: object, labels: object, most: object
) -> pb.FromSandbox:
    if not isinstance(labels, list):
        raise TypeError("labels")
    request = pb.AskModelRequest(
        seq=seq,
        line=_number(line),
        kind=_QUESTIONS[kind],
        text=_text(text),
        labels=[_text(label) for label in labels],
        max_chars=_number(most),
    )
    return pb.FromSandbox(ask_model=request)


def _store(seq: int, _kind: str, line: object) -> pb.FromSandbox:
    return pb.FromSandbox(open_store=pb.OpenStoreRequest(seq=seq, line=_number(line)))


_MAKERS: Mapping[str, Callable[..., pb.FromSandbox]] = {
    "tool": _tool,
    "batch": _batch,
    "store": _store,
    **dict.fromkeys(_LOOKUPS, _lookup),
    **dict.fromkeys(_QUESTIONS, _question),
}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("text")
    return value


def _number(value: Any) -> int:
    if type(value) is not int or not -_INT32 <= value < _INT32:
        raise TypeError("number")
    return value
