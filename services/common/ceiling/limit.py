"""Choosing the way an output is brought under the ceiling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from services.common.ceiling.cut import cut_head, cut_head_and_tail, cut_to_lines
from services.common.ceiling.structure import shorten_json
from services.common.wording import Locale

# What survives a cut: the opening, or the opening and the end.
Cut = Literal["head", "head_and_tail"]
How = Literal["structure", "cut"]

# What JSON is held to when the agent's profile names no ceiling of its own (TLS-121).
STRUCTURE_CHARS = 6000


@dataclass(frozen=True, slots=True)
class Limited:
    """An output that fits."""

    text: str
    # None: it is the whole output.
    how: How | None
    original_chars: int


def limit(
    text: str,
    ceiling: int,
    locale: Locale,
    *,
    cut: Cut = "head",
    status_line: bool = True,
    structure_ceiling: int | None = None,
    is_error: bool = False,
    file_lines: int | None = None,
) -> Limited:
    """Bring `text` to at most `ceiling` characters (code points), marks included.

    Args:
        text: The whole output.
        ceiling: At least 1.
        locale: Of the marks.
        cut: What survives when it is cut.
        status_line: Of a cut to head and tail: the last line says how a command ended.
        structure_ceiling: A lower ceiling for shortened JSON.
        is_error: Errors are cut, whatever they look like (TLS-113).
        file_lines: The text is a whole file of so many lines: a cut says where to read on.
    """
    if len(text) <= ceiling:
        return Limited(text, None, len(text))
    if not is_error:
        for budget in sorted({min(ceiling, structure_ceiling or ceiling), ceiling}):
            shortened = shorten_json(text, budget, locale)
            if shortened is not None:
                return Limited(shortened, "structure", len(text))
    if file_lines is not None and not is_error:
        return Limited(cut_to_lines(text, ceiling, locale, file_lines), "cut", len(text))
    if cut == "head_and_tail":
        cut_text = cut_head_and_tail(text, ceiling, locale, status_line=status_line)
    else:
        cut_text = cut_head(text, ceiling, locale)
    return Limited(cut_text, "cut", len(text))
