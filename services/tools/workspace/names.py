"""Showing names that others chose: as data on one line, whatever is in them (TLS-074)."""

from __future__ import annotations

import unicodedata

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Of a name inside a sentence.
QUOTED_CHARS = 500


def shown(name: str) -> str:
    """`name` itself when it is plain, else in quotes with its hidden characters spelled out.

    A name in quotes is for reading: no file tool takes one with control characters in it.
    """
    spelled = "".join(map(_spelled, name))
    return name if spelled == name else f'"{spelled}"'


def quoted(name: str) -> str:
    """`name` in quotes, as it stands inside a sentence; the end of a very long one is left out."""
    cut = name if len(name) <= QUOTED_CHARS else f"{name[: QUOTED_CHARS - 1]}…"
    return f'"{"".join(map(_spelled, cut))}"'


def _spelled(char: str) -> str:
    if unicodedata.category(char) not in _HIDDEN:
        return char
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        # A byte that is not UTF-8, in the form that Python gives it.
        return f"\\x{code - 0xDC00:02x}"
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char, f"\\u{code:04x}")
