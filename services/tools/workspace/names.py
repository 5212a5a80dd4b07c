"""Showing names that others chose: as data on one line, whatever is in them (TLS-074)."""

from __future__ import annotations

import unicodedata

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
SHOWN_CHARS = 500


def shown(name: str) -> str:
    """`name` itself when it is plain, else in quotes with its hidden characters spelled out.

    A name in quotes is for reading: no file tool takes one with control characters in it.
    """
    cut = name if len(name) <= SHOWN_CHARS else name[: SHOWN_CHARS - 1] + "…"
    spelled = "".join(map(_spelled, cut))
    return cut if spelled == cut else f'"{spelled}"'


def quoted(name: str) -> str:
    """`name` in quotes, as it stands inside a sentence."""
    plain = shown(name)
    return plain if plain.startswith('"') and plain != name else f'"{plain}"'


def _spelled(char: str) -> str:
    if unicodedata.category(char) not in _HIDDEN:
        return char
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        # A byte that is not UTF-8, in the form that Python gives it.
        return f"\\x{code - 0xDC00:02x}"
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char, f"\\u{code:04x}")
