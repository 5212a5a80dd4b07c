"""Text from outside, made such that every store, provider and JSON body takes it (FLD-014).

Two kinds of character are refused further in: NUL (by Postgres) and lone surrogates (by UTF-8).
They become U+FFFD once, where the text enters.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
# An escape inside JSON text, taken whole so that a doubled backslash is never read as its start.
_JSON_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.", re.DOTALL
)


class Storable(NamedTuple):
    """Text that can be stored and sent, and how many characters were replaced to make it so."""

    text: str
    replaced: int


def storable(text: str) -> Storable:
    """Write NUL and lone surrogates of `text` as U+FFFD.

    A high and a low surrogate that stand together are one character and stay it.
    """
    if not _UNSTORABLE.search(text):
        return Storable(text, 0)
    return Storable(*_UNSTORABLE.subn("\ufffd", _PAIR.sub(_join, text)))


def storable_json(text: str) -> Storable:
    """The same for JSON text, whose escapes can name those characters too.

    Everything else, the digits of numbers included, stays as written.
    """
    text, replaced = storable(text)
    if "\\u" not in text:
        return Storable(text, replaced)
    found = 0

    def escape(match: re.Match[str]) -> str:
        nonlocal found
        written = match[0]
        if len(written) == 6:
            code = int(written[2:], 16)
            if code == 0 or 0xD800 <= code <= 0xDFFF:
                found += 1
                return "\\ufffd"
        return written

    escaped = _JSON_ESCAPE.sub(escape, text)
    return Storable(escaped, replaced + found)


def _join(pair: re.Match[str]) -> str:
    return pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le")
