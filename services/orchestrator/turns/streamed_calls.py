"""Noticing that the arguments of a call are whole while the model still writes (PIP-101)."""

from __future__ import annotations

from dataclasses import dataclass, field

from services.orchestrator.calls.arguments.fit import MOST_CHARS
from services.orchestrator.models.contract import CallDelta


@dataclass(slots=True)
class _Pieces:
    name: str
    parts: list[str] = field(default_factory=list)
    chars: int = 0
    depth: int = 0
    in_string: bool = False
    escaped: bool = False
    # Nothing more is looked for: it was told, it is no object, or it is too long.
    over: bool = False

    def ends(self, chunk: str) -> bool:
        """Take more text; whether the object that it began with ends in it."""
        for char in chunk:
            if self.in_string:
                if self.escaped:
                    self.escaped = False
                elif char == "\\":
                    self.escaped = True
                elif char == '"':
                    self.in_string = False
            elif char == '"':
                self.in_string = True
            elif char in "{[":
                self.depth += 1
            elif char in "}]":
                self.depth -= 1
                if self.depth <= 0:
                    return True
        return False


class StreamedCalls:
    """The calls of one reply as they come in."""

    def __init__(self) -> None:
        self._attempt = 0
        self._calls: dict[int, _Pieces] = {}

    def feed(self, delta: CallDelta) -> tuple[str, str] | None:
        """Name and arguments of a call whose arguments this piece ends, told once; else None.

        The text is JSON by the count of its brackets alone: whoever uses it reads it.
        """
        if delta.attempt != self._attempt:
            self._attempt = delta.attempt
            self._calls.clear()
        if not delta.name:
            self._calls.pop(delta.index, None)
            return None
        call = self._calls.setdefault(delta.index, _Pieces(delta.name))
        if call.over or not delta.chunk:
            return None
        call.chars += len(delta.chunk)
        if call.chars > MOST_CHARS:
            call.over = True
            call.parts.clear()
            return None
        call.parts.append(delta.chunk)
        if not call.ends(delta.chunk):
            return None
        call.over = True
        return call.name, "".join(call.parts)
