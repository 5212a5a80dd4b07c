"""One fault in a file."""

from __future__ import annotations

from dataclasses import dataclass

MESSAGE_CHARS = 300


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """Where it is (from 1) and what it is, in the checker's own words."""

    line: int
    column: int
    code: str
    message: str

    @classmethod
    def at(cls, line: int | None, column: int | None, code: str, message: str) -> Finding:
        """A finding whose place may be unknown and whose message may be anything."""
        words = " ".join(message.split())
        return cls(max(line or 1, 1), max(column or 1, 1), code, words[:MESSAGE_CHARS])
