"""How a recorded-style stream and its expected reply are written down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.fixtures.model_server import Turn, turn

READ = '{"path": "notes.md"}'
ANY_ID = "*"


@dataclass(frozen=True)
class Shape:
    """One recorded-style stream."""

    name: str
    turn: Turn
    text: str = ""
    # (id, name, arguments); ANY_ID where the server sent none.
    calls: Sequence[tuple[str, str, str]] = ()
    finish: str | None = "stop"
    thinks: bool = False
    usage: Mapping[str, int] = field(default_factory=dict)
    cost: float | None = None
    # For shapes that fail: "broken", "failed" or "retried" (whole at the second asking).
    fails: str = ""


def delta(**fields: Any) -> dict[str, Any]:
    return {"delta": fields}


def pieces(*calls: Mapping[str, Any]) -> dict[str, Any]:
    return {"delta": {"tool_calls": list(calls)}}


def piece(
    index: Any = None, call_id: Any = None, name: Any = None, arguments: Any = "absent", **extra: Any
) -> dict[str, Any]:
    function: dict[str, Any] = {}
    if name is not None:
        function["name"] = name
    if arguments != "absent":
        function["arguments"] = arguments
    made: dict[str, Any] = {"type": "function", "function": function, **extra}
    if index is not None:
        made["index"] = index
    if call_id is not None:
        made["id"] = call_id
    return made


def quiet(*steps: Mapping[str, Any], **fields: Any) -> Turn:
    """A turn without usage."""
    return turn(*steps, **{"usage": None, **fields})


def names(shapes: Sequence[Shape]) -> list[str]:
    return [shape.name for shape in shapes]
