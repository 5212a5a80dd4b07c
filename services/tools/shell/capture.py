"""What a command printed, kept within bounds however much it prints (TLS-255)."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

HEAD_BYTES = 5 * 1024 * 1024
TAIL_CHARS = 4_000


@dataclass(frozen=True, slots=True)
class CapturedOutput:
    """Printed text: the opening, the end, and how much between them was not kept.

    Attributes:
        head: The opening, all of it when `dropped_chars` is 0 and `tail` is empty.
        dropped_chars: Characters between the two that were counted and let go.
        total_chars: Everything printed.
    """

    head: str
    tail: str
    dropped_chars: int
    total_chars: int

    def last(self, chars: int) -> str:
        """The last characters, at most `TAIL_CHARS` of them."""
        chars = min(chars, TAIL_CHARS)
        if chars <= 0:
            return ""
        return (self.head[-chars:] + self.tail)[-chars:]


class OutputCapture:
    """Takes bytes as they are printed.

    Bytes that are not UTF-8, and NUL, which no text store can hold, become U+FFFD (TLS-256).
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._head: list[str] = []
        self._head_chars = 0
        self._room = HEAD_BYTES
        self._tail = ""
        self._total = 0

    @property
    def overflowing(self) -> bool:
        """Whether what comes now is no longer kept whole."""
        return self._room <= 0

    @property
    def total_chars(self) -> int:
        """Characters printed so far."""
        return self._total

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        if self._room > 0:
            head, data = data[: self._room], data[self._room :]
            self._room -= len(head)
            self._keep(self._decoder.decode(head))
        if data:
            self._pass(self._decoder.decode(data))

    def finish(self) -> CapturedOutput:
        """Close the text; an unfinished character at its end becomes U+FFFD."""
        rest = self._decoder.decode(b"", final=True)
        if self.overflowing:
            self._pass(rest)
        else:
            self._keep(rest)
        dropped = self._total - self._head_chars - len(self._tail)
        return CapturedOutput("".join(self._head), self._tail, dropped, self._total)

    def latest(self, chars: int) -> str:
        """The last characters so far, for people who watch."""
        kept = self._tail
        for piece in reversed(self._head):
            if len(kept) >= chars:
                break
            kept = piece[-chars:] + kept
        return kept[-chars:]

    def _keep(self, text: str) -> None:
        text = text.replace("\0", "\ufffd")
        self._head.append(text)
        self._head_chars += len(text)
        self._total += len(text)

    def _pass(self, text: str) -> None:
        text = text.replace("\0", "\ufffd")
        self._total += len(text)
        self._tail = (self._tail + text[-TAIL_CHARS:])[-TAIL_CHARS:]
