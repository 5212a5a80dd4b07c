"""Shortening JSON without touching a key or a number (TLS-096 to 103)."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

from services.common.wording import Locale, load

# Strings are never shortened below this many characters of their own text.
_SHORTEST_STRING = 24
# String limits tried in turn until enough elements of each array fit.
_STRING_LIMITS = (4000, 1000, 300, 100, 50, _SHORTEST_STRING)
# With fewer elements left than this, shorter strings are tried first.
_WANTED_ELEMENTS = 5
_LONGEST_JSON = 64 * 1024**2


class _Token(str):
    """A number, boolean or null exactly as it was written."""

    __slots__ = ()


class _Pairs(list[tuple[str, Any]]):
    """An object with its order and its repeated keys."""

    __slots__ = ()


class _DoesNotFit(Exception):
    pass


def shorten_json(text: str, ceiling: int, locale: Locale) -> str | None:
    """`text` as JSON of at most `ceiling` characters, or None when that is not possible.

    None also when the text is not strict JSON with an object or array at the root.
    """
    stripped = text.strip()
    if not stripped.startswith(("{", "[")) or len(stripped) > _LONGEST_JSON:
        return None
    try:
        root = _DECODER.decode(stripped)
        return _fit(root, ceiling, locale)
    except (ValueError, RecursionError):
        return None


def _fit(root: Any, ceiling: int, locale: Locale) -> str | None:
    longest_array, longest_string = _measure(root)

    def attempt(elements: int, chars: int) -> str | None:
        try:
            return _Writer(ceiling, elements, chars, locale).write(root)
        except _DoesNotFit:
            return None

    limits = [longest_string, *(each for each in _STRING_LIMITS if each < longest_string)]
    wanted = min(_WANTED_ELEMENTS, longest_array)
    best: tuple[int, int] | None = None
    for chars in limits:
        elements = _largest(0, longest_array, partial(_holds, attempt, chars))
        if elements is not None and (best is None or elements > best[0]):
            best = (elements, chars)
        if elements is not None and elements >= wanted:
            break
    if best is None:
        return None
    elements, chars = best
    wider = _largest(chars, longest_string, lambda count: attempt(elements, count) is not None)
    return attempt(elements, wider if wider is not None else chars)


def _holds(attempt: Callable[[int, int], str | None], chars: int, elements: int) -> bool:
    return attempt(elements, chars) is not None


def _largest(low: int, high: int, fits: Callable[[int], bool]) -> int | None:
    """The largest number from `low` to `high` that fits; None when not even `low` does."""
    if not fits(low):
        return None
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low


def _measure(root: Any) -> tuple[int, int]:
    """The longest array and the longest string."""
    array = string = 0
    stack = [root]
    while stack:
        value = stack.pop()
        if isinstance(value, _Pairs):
            stack.extend(inner for _, inner in value)
        elif isinstance(value, list):
            array = max(array, len(value))
            stack.extend(value)
        elif isinstance(value, str) and not isinstance(value, _Token):
            string = max(string, len(value))
    return array, string


class _Writer:
    """Writes a tree until it is done or the ceiling is passed."""

    def __init__(self, ceiling: int, elements: int, chars: int, locale: Locale) -> None:
        self._left = ceiling
        self._elements = elements
        self._chars = chars
        self._locale: Locale = locale
        self._parts: list[str] = []

    def write(self, root: Any) -> str:
        self._value(root)
        return "".join(self._parts)

    def _add(self, text: str) -> None:
        self._left -= len(text)
        if self._left < 0:
            raise _DoesNotFit
        self._parts.append(text)

    def _value(self, value: Any) -> None:
        if isinstance(value, _Pairs):
            self._add("{")
            for index, (key, inner) in enumerate(value):
                self._add(f"{',' if index else ''}{_quote(key)}:")
                self._value(inner)
            self._add("}")
        elif isinstance(value, list):
            self._array(value)
        elif isinstance(value, _Token):
            self._add(value)
        else:
            self._add(_quote(self._string(value)))

    def _array(self, values: list[Any]) -> None:
        self._add("[")
        kept = values[: self._elements]
        for index, inner in enumerate(kept):
            if index:
                self._add(",")
            self._value(inner)
        if len(kept) < len(values):
            mark = load("common").text(self._locale, "ceiling.elements", count=len(values) - len(kept))
            self._add(f"{',' if kept else ''}{_quote(mark)}")
        self._add("]")

    def _string(self, value: str) -> str:
        if len(value) <= self._chars:
            return value
        head = self._chars * 2 // 3
        tail = self._chars - head
        mark = load("common").text(self._locale, "ceiling.middle", count=len(value) - self._chars)
        shortened = f"{value[:head]}{mark}{value[len(value) - tail :]}"
        return shortened if len(shortened) < len(value) else value


def _quote(text: str) -> str:
    # A lone surrogate has no form outside an escape.
    return json.dumps(text, ensure_ascii=not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text))


def _strict(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


class _Decoder(json.JSONDecoder):
    """Reads numbers as their tokens; true, false and null keep their Python values till writing."""

    def decode(self, text: str, *args: Any) -> Any:
        return _tokens(super().decode(text, *args))


def _tokens(value: Any) -> Any:
    if isinstance(value, _Pairs):
        return _Pairs((key, _tokens(inner)) for key, inner in value)
    if isinstance(value, list):
        return [_tokens(inner) for inner in value]
    if value is True:
        return _Token("true")
    if value is False:
        return _Token("false")
    if value is None:
        return _Token("null")
    return value


_DECODER = _Decoder(object_pairs_hook=_Pairs, parse_int=_Token, parse_float=_Token, parse_constant=_strict)
