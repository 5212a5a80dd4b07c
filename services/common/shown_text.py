"""Text as a person who decides on it must see it (FLD-025).

What cannot be seen, or looks like something else, is spelled out: invisible and direction-changing
characters as ``[U+XXXX]``, long runs of blanks as a count, host names in the form that is looked up.
What runs is never this text.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right

from services.common.wording import Locale, load

# Blanks in a row that are shown as they are.
_VISIBLE_BLANKS = 4
# Unicode's Default_Ignorable_Code_Point as first and last code points.
_IGNORABLE = (
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x2800, 0x2800),  # not in the property, and as blank as those
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)
_STARTS = [first for first, _ in _IGNORABLE]
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})
_KEPT = frozenset(" \n\t")
_BLANK_RUN = re.compile(rf"[ \t]{{{_VISIBLE_BLANKS + 1},}}")
# After a scheme or in an address every name is a host; elsewhere only a dotted word may be one.
_NAMED_HOST = re.compile(r"(?P<before>://(?:[^\s/@\"'<>]*@)?|(?<=[^\s@])@)(?P<host>[^\s/:?#@\"'<>\\\])},]+)")
_DOTTED = re.compile(r"(?<![\w@/.-])\w[\w-]*(?:[.\u3002\uff0e\uff61]\w[\w-]*)+")
# Written together in one language.
_EAST_ASIAN = frozenset({"CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "KATAKANA-HIRAGANA"})


def shown(text: str, locale: Locale) -> str:
    """`text` with everything deceptive spelled out; plain text comes back unchanged."""
    named = _NAMED_HOST.sub(lambda hit: hit["before"] + _host(hit["host"], locale, always=True), text)
    dotted = _DOTTED.sub(lambda hit: _host(hit[0], locale, always=False), named)
    visible = "".join(map(_visible, dotted))
    return _BLANK_RUN.sub(
        lambda run: load("common").text(locale, "shown_text.blanks", count=len(run[0])), visible
    )


def _visible(char: str) -> str:
    if char.isascii() and char.isprintable():
        return char
    if char in _KEPT:
        return char
    if unicodedata.category(char) in _HIDDEN_CATEGORIES or _ignorable(ord(char)):
        return f"[U+{ord(char):04X}]"
    return char


def _ignorable(code: int) -> bool:
    at = bisect_right(_STARTS, code) - 1
    return at >= 0 and code <= _IGNORABLE[at][1]


def _host(name: str, locale: Locale, *, always: bool) -> str:
    if name.isascii():
        return name
    mixed = any(_mixed(label) for label in re.split(r"[.\u3002\uff0e\uff61]", name))
    if not (always or mixed):
        return name
    try:
        ascii_form = name.encode("idna").decode("ascii")
    except UnicodeError:
        # Not a name any resolver takes; the characters are spelled out where they are hidden.
        ascii_form = name
    mark = load("common").text(locale, "shown_text.mixed_scripts") if mixed else ""
    return f"{ascii_form} {mark}" if mark else ascii_form


def _mixed(label: str) -> bool:
    scripts = set()
    for char in label:
        if unicodedata.category(char).startswith("L"):
            script = unicodedata.name(char, "UNKNOWN").split(" ")[0]
            scripts.add("EAST ASIAN" if script in _EAST_ASIAN else script)
    return len(scripts) > 1
