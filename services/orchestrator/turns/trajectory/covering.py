"""Secrets out of an export (TRN-314): values this crew knows, and what has the shape of a key."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from services.common.toolhost.exact_json import WrittenFloat, WrittenInt

# Shorter values would blank out ordinary words.
SHORTEST = 8
# Of a value that the record cut: fewer characters say too little to be worth a false alarm.
_SHORTEST_PART = 6
# How deep JSON may stand inside JSON inside a text.
_ESCAPED_LEVELS = 2
_SHAPES = re.compile(
    r"""
    (?<![A-Za-z0-9])sk-[A-Za-z0-9_-]{8,}
    | (?<=bearer\ )[A-Za-z0-9._~+/=-]{8,}
    | (?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){0,2}
    | (?<![A-Za-z0-9])crew_[A-Za-z0-9_-]{16,}
    """,
    re.VERBOSE | re.IGNORECASE,
)


class Covering:
    """Puts a mark in the place of secrets.

    Args:
        values: Secrets of this process; those under `SHORTEST` characters are left alone.
        mark: What stands for them.
    """

    def __init__(self, values: Iterable[str], mark: str) -> None:
        self._mark = mark
        known = {form for value in values if len(value) >= SHORTEST for form in _forms(value)}
        self._values = sorted(known, key=len, reverse=True)
        self._longest = max(map(len, self._values), default=0)
        self._whole = _any_of(self._values)
        self._heads = _anywhere({value[:_SHORTEST_PART] for value in self._values})
        self._tails = _anywhere({value[-_SHORTEST_PART:] for value in self._values})

    def text(self, text: str) -> str:
        """`text` without secrets."""
        if self._whole is not None:
            text = self._without_parts(self._whole.sub(self._mark_of, text))
        return _SHAPES.sub(self._mark_of, text)

    def tree(self, value: Any) -> Any:
        """A copy of JSON-like `value`, its keys and its written numbers included."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.tree(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.tree(inner) for inner in value]
        if isinstance(value, WrittenFloat | WrittenInt) or (
            isinstance(value, int) and not isinstance(value, bool)
        ):
            written = getattr(value, "text", None) or str(value)
            # Nothing cuts a number, so only a whole value can stand in it.
            return self._mark if self._whole is not None and self._whole.search(written) else value
        return value

    def _without_parts(self, text: str) -> str:
        """Cover the beginnings and ends of values that stand where the record cut a text."""
        pieces, at = [], 0
        for start, end in sorted({*self._cut_heads(text), *self._cut_tails(text)}):
            if end > at:
                pieces += [text[at:start], self._mark] if start >= at else []
                at = end
        return "".join([*pieces, text[at:]])

    def _cut_heads(self, text: str) -> Iterator[tuple[int, int]]:
        for hit in self._heads.finditer(text) if self._heads else ():
            start = hit.start()
            end = _cut_behind(text, start + _SHORTEST_PART, start + self._longest)
            if end is not None and any(value.startswith(text[start:end]) for value in self._values):
                yield start, end

    def _cut_tails(self, text: str) -> Iterator[tuple[int, int]]:
        for hit in self._tails.finditer(text) if self._tails else ():
            end = hit.start() + _SHORTEST_PART
            start = _cut_before(text, end - self._longest, hit.start())
            if start is not None and any(value.endswith(text[start:end]) for value in self._values):
                yield start, end

    def _mark_of(self, match: re.Match[str]) -> str:
        return self._mark


def _cut_behind(text: str, least: int, most: int) -> int | None:
    """Where a record cut the text between two places: before a mark, or at its end."""
    at = text.find("…", least, most + 1)
    if at < 0:
        return len(text) if len(text) <= most else None
    return at - 1 if text[at - 1] == "\n" and at > least else at


def _cut_before(text: str, least: int, most: int) -> int | None:
    """Where the text goes on behind a cut between two places: after a mark, or at its beginning."""
    at = text.rfind("…", max(0, least - 2), most)
    if at < 0:
        return 0 if least <= 0 else None
    return at + 2 if text[at + 1] == "\n" and at + 2 <= most else at + 1


def _forms(value: str) -> set[str]:
    """`value` as it may stand in a text, in JSON, and in JSON inside JSON."""
    found = forms = {value}
    for _ in range(_ESCAPED_LEVELS):
        forms = {json.dumps(form, ensure_ascii=ascii)[1:-1] for form in forms for ascii in (True, False)}
        forms |= {form.replace("/", "\\/") for form in forms}
        found = found | forms
    return found


def _any_of(texts: Iterable[str]) -> re.Pattern[str] | None:
    """A pattern of the first of `texts` that fits; None when there are none."""
    alternatives = "|".join(map(re.escape, texts))
    return re.compile(alternatives) if alternatives else None


def _anywhere(texts: Iterable[str]) -> re.Pattern[str] | None:
    """A pattern of every place where one of `texts` stands, overlapping ones too; it takes nothing."""
    alternatives = "|".join(map(re.escape, texts))
    return re.compile(f"(?={alternatives})") if alternatives else None
