"""Putting streamed tool calls together, whatever shape their pieces have (FLD-005).

The protocol says that a call is told by its `index` and that its id and name come once, first.
Servers differ: they leave the index out, give every call index 0, repeat the id or invent one per
piece, send the arguments as an object or the whole call at once. What follows decides for each
piece whether it continues a call or begins one.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from services.common.storable import storable_json
from services.orchestrator.models.arguments import checked_arguments, is_object
from services.orchestrator.models.contract import ReplyCall
from services.orchestrator.models.text_pieces import TextPieces

MAX_CALLS = 256


class TooManyCalls(ValueError):
    """A reply with more calls than any real one has."""


@dataclass(slots=True)
class _Call:
    position: int
    index: int | None
    id: str = ""
    name: str = ""
    text: TextPieces = field(default_factory=TextPieces)
    # JSON text of arguments that came as an object.
    whole: str = ""
    # What only the provider understands and wants back (FLD-001).
    extra: Any = None
    told: bool = False
    whole_told: bool = False

    @property
    def complete(self) -> bool:
        """Whether its arguments can take nothing more."""
        if self.text.empty:
            return self.whole not in ("", "{}")
        return self.text.ends_with("}") and is_object(self.text.so_far)

    @property
    def begun(self) -> bool:
        """Whether any of its arguments have come."""
        return bool(self.whole) or not self.text.empty

    def arguments(self) -> str:
        """The arguments as the model wrote them."""
        text = self.text.so_far
        if not text.strip():
            return self.whole
        return text if is_object(text) else _once(text)


@dataclass(frozen=True, slots=True)
class CallPiece:
    """More of the arguments of the call at `position`, which is named `name`."""

    position: int
    name: str
    chunk: str


class CallPieces:
    """The calls of one reply, in the order of their first appearance."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._current: _Call | None = None

    def feed(self, pieces: Sequence[Mapping[str, Any]]) -> list[CallPiece]:
        """Take the call pieces of one chunk and return what is new of calls that have a name.

        Raises:
            TooManyCalls: More than `MAX_CALLS`.
        """
        news: list[CallPiece] = []
        seen: set[int] = set()
        for piece in pieces:
            function = piece.get("function")
            fields = function if isinstance(function, Mapping) else piece
            index, call_id = _index(piece.get("index")), _text(piece.get("id")).strip()
            name, arguments = _text(fields.get("name")).strip(), fields.get("arguments")
            call = self._find(index, call_id, name, arguments)
            if call is not None and index is None and not call_id and name and call.position in seen:
                # Two named pieces of one chunk that nothing tells apart are two calls.
                call = None
            call = call or self._begin(index)
            seen.add(call.position)
            self._current = call
            call.id = call.id or call_id
            if name and call.name != name:
                call.name += name
            if piece.get("extra_content") is not None:
                call.extra = piece["extra_content"]
            if (told := _take(call, arguments)) is not None:
                news.append(told)
        if len(self._calls) > MAX_CALLS:
            raise TooManyCalls
        return news

    def finish(self, *, at_limit: bool) -> tuple[list[ReplyCall], int]:
        """Return the finished calls and how many characters were replaced (FLD-014).

        Args:
            at_limit: The reply stopped at the output limit: only the last call may be cut in the
                middle (TRN-130), and none of them runs (PIP-013).
        """
        finished: list[ReplyCall] = []
        replaced = 0
        for call in self._calls:
            call.text.flush()
            replaced += call.text.replaced
            text, more = storable_json(call.arguments())
            replaced += more
            last = call is self._calls[-1]
            arguments, broken = checked_arguments(text, truncated=at_limit and last)
            finished.append(
                ReplyCall(
                    provider_id=call.id or str(uuid.uuid4()),
                    name=call.name,
                    arguments=arguments,
                    broken=broken,
                    cut_off=at_limit,
                )
            )
        return finished, replaced

    @property
    def extras(self) -> list[Any]:
        """For each call what the provider wants back with it, or None."""
        return [call.extra for call in self._calls]

    def __len__(self) -> int:
        return len(self._calls)

    def _begin(self, index: int | None) -> _Call:
        call = _Call(len(self._calls), index)
        self._calls.append(call)
        return call

    def _find(self, index: int | None, call_id: str, name: str, arguments: object) -> _Call | None:
        """The call that this piece continues; None when it begins one."""
        there = [call for call in self._calls if index is None or call.index in (index, None)]
        if call_id:
            same = [call for call in there if call.id == call_id]
            if same:
                # An id used twice: a finished call is not continued by a named piece with arguments.
                again = bool(name and same[-1].complete and arguments not in (None, "", {}))
                return None if again else same[-1]
        if not there:
            return None
        latest = self._current if self._current in there else there[-1]
        assert latest is not None
        if call_id and latest.id:
            # Another id begins another call, unless the server makes up one per piece.
            invented = not name and bool(arguments) and latest.begun and not latest.complete
            return latest if invented else None
        if name and latest.name:
            if latest.complete:
                repeats = name == latest.name and arguments in (None, "")
                return latest if repeats else None
            if name != latest.name and (index is None or latest.begun):
                return None
        return latest


def _take(call: _Call, arguments: object) -> CallPiece | None:
    """Add `arguments` to `call`; what can now be told of it."""
    chunk = ""
    if isinstance(arguments, str):
        chunk = call.text.feed(arguments)
    elif arguments is not None:
        call.whole = orjson.dumps(arguments).decode()
    if not call.name:
        return None
    first = not call.told
    call.told = True
    if first:
        chunk = call.text.so_far
    if not chunk and call.whole not in ("", "{}") and call.text.empty and not call.whole_told:
        call.whole_told = True
        chunk = call.whole
    return CallPiece(call.position, call.name, chunk) if chunk or first else None


def _once(text: str) -> str:
    """Undo two ways of repeating: an empty object before the real one, and the same text twice."""
    rest = text.lstrip().removeprefix("{}")
    if rest != text.lstrip() and is_object(rest):
        return rest
    half, odd = divmod(len(text), 2)
    if not odd and text[:half] == text[half:] and is_object(text[:half]):
        return text[:half]
    return text


def _index(value: object) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
