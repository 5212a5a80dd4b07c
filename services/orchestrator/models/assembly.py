"""Making a reply of the chunks of a chat-completions stream. Pure: no network, no clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.orchestrator.models.call_pieces import CallPiece, CallPieces, TooManyCalls
from services.orchestrator.models.contract import ReplyCall
from services.orchestrator.models.opaque import OpaqueFields
from services.orchestrator.models.text_pieces import TextPieces

Chunk = Mapping[str, Any]

# Ways to say that the reply ended at the output limit (TRN-130).
_AT_LIMIT = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})


class MalformedChunk(ValueError):
    """Data that is no chunk of a chat-completions stream."""


@dataclass(frozen=True, slots=True)
class Thought:
    """The model thinks."""


@dataclass(frozen=True, slots=True)
class Text:
    """More text of the reply."""

    text: str


Piece = Thought | Text | CallPiece


@dataclass(frozen=True, slots=True)
class Assembled:
    """Everything a stream said, without what only the caller knows (route, times, price)."""

    text: str
    calls: Sequence[ReplyCall]
    finish_reason: str | None
    # The provider's own usage object; empty when it sent none.
    usage: Mapping[str, Any]
    opaque: str | None
    replaced_chars: int


class Assembly:
    """Takes chunks one by one."""

    def __init__(self) -> None:
        self._text = TextPieces()
        self._calls = CallPieces()
        self._opaque = OpaqueFields()
        self._finish: str | None = None
        self._usage: dict[str, Any] = {}

    def feed(self, chunk: Chunk) -> Iterator[Piece]:
        """Take a chunk and yield what is new in it.

        Raises:
            MalformedChunk: It has not the shape of a chunk.
        """
        self._take_usage(chunk.get("usage"))
        self._take_usage(_mapping(chunk.get("x_groq")).get("usage"))
        choice = self._choice(chunk.get("choices"))
        if choice is None:
            return
        self._take_usage(choice.get("usage"))
        if isinstance(reason := choice.get("finish_reason"), str) and reason:
            self._finish = reason[:64]
        # A server that was asked to stream and answers whole sends `message` instead.
        delta = choice.get("delta") or choice.get("message")
        if delta is None or delta == {}:
            return
        if not isinstance(delta, Mapping):
            raise MalformedChunk("delta")
        yield from self._take_delta(delta)

    def flush(self) -> Iterator[Piece]:
        """End the stream and yield what was held back."""
        if text := self._text.flush():
            yield Text(text)

    @property
    def text(self) -> str:
        """The text so far."""
        return self._text.so_far

    @property
    def has_calls(self) -> bool:
        """Whether a call has begun."""
        return len(self._calls) > 0

    def result(self, origin: str) -> Assembled:
        """The whole reply; call `flush` first.

        Args:
            origin: Who may have the opaque fields back.
        """
        calls, replaced = self._calls.finish(at_limit=self._finish in _AT_LIMIT)
        return Assembled(
            text=self._text.so_far,
            calls=calls,
            finish_reason=self._finish,
            usage=self._usage,
            opaque=self._opaque.text(origin, self._calls.extras),
            replaced_chars=self._text.replaced + replaced,
        )

    def _choice(self, choices: object) -> Mapping[str, Any] | None:
        """The part of the one reply that was asked for; a server may send others beside it."""
        if choices is None or choices == []:
            return None
        if not isinstance(choices, list) or not all(isinstance(choice, Mapping) for choice in choices):
            raise MalformedChunk("choices")
        first: Mapping[str, Any] | None = next(
            (choice for choice in choices if not choice.get("index")), None
        )
        return first

    def _take_delta(self, delta: Mapping[str, Any]) -> Iterator[Piece]:
        thought = self._opaque.feed(delta)
        text, more_thought = _content(delta.get("content"))
        if thought or more_thought:
            yield Thought()
        if not text and isinstance(refusal := delta.get("refusal"), str):
            text = refusal
        if text and (shown := self._text.feed(text)):
            yield Text(shown)
        pieces = delta.get("tool_calls")
        if isinstance(pieces, Mapping):
            pieces = [pieces]
        if not pieces and isinstance(old := delta.get("function_call"), Mapping):
            pieces = [{"index": 0, "function": old}]
        if not pieces:
            return
        if not isinstance(pieces, list) or not all(isinstance(piece, Mapping) for piece in pieces):
            raise MalformedChunk("tool_calls")
        try:
            yield from self._calls.feed(pieces)
        except TooManyCalls:
            raise MalformedChunk("tool_calls") from None

    def _take_usage(self, usage: object) -> None:
        # Some servers send it with every chunk, counted up: what comes later holds.
        if isinstance(usage, Mapping):
            self._usage.update({name: value for name, value in usage.items() if value is not None})


def _content(content: object) -> tuple[str, bool]:
    """The text of a delta's content, and whether thoughts stand among its parts."""
    if isinstance(content, str):
        return content, False
    if content is None:
        return "", False
    if not isinstance(content, list):
        raise MalformedChunk("content")
    parts = [part for part in content if isinstance(part, Mapping)]
    texts = [
        part["text"] for part in parts if part.get("type") == "text" and isinstance(part.get("text"), str)
    ]
    return "".join(texts), any(part.get("type") == "thinking" for part in parts)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
