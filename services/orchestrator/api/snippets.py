"""The part of a message around what was looked for, in its own characters (TRN-340)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

SNIPPET_CHARS = 160
# What stands before the match.
_LEAD_CHARS = 50
_CHUNK_CHARS = 1_000
_MARKS = re.compile(r"[\u0300-\u036f]")
_STROKES = str.maketrans("đĐ", "dd")


def folded(text: str) -> str:
    """`text` as the store compares it: the database's function of the same name, in Python."""
    bare = _MARKS.sub("", unicodedata.normalize("NFD", text)).translate(_STROKES)
    return unicodedata.normalize("NFC", bare).lower()


def snippet(content: str, terms: Sequence[str]) -> str:
    """At most `SNIPPET_CHARS` characters of `content` with the first term in it.

    An ellipsis stands only at an end that was really cut.
    """
    if len(content) <= SNIPPET_CHARS:
        return content
    text = folded(content)
    places = [place for term in terms if (place := text.find(folded(term))) >= 0]
    start = max(0, _original(content, min(places, default=0)) - _LEAD_CHARS)
    end = min(len(content), start + SNIPPET_CHARS)
    start = max(0, end - SNIPPET_CHARS)
    # A mark stays with its letter.
    while start > 0 and unicodedata.combining(content[start]):
        start -= 1
    while end < len(content) and unicodedata.combining(content[end]):
        end += 1
    return f"{'…' if start else ''}{content[start:end]}{'…' if end < len(content) else ''}"


def _original(content: str, place: int) -> int:
    """Where the character stands that became the one at `place` of the folded text."""
    at = 0
    while at < len(content):
        length = len(folded(content[at : at + _CHUNK_CHARS]))
        if length > place:
            break
        place, at = place - length, at + _CHUNK_CHARS
    for position in range(at, min(len(content), at + _CHUNK_CHARS)):
        length = len(folded(content[position]))
        if length > place:
            return position
        place -= length
    return min(at, len(content))
