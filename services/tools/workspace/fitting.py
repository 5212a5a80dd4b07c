"""Fitting lines under the ceiling, so that a result is cut once and between its lines (FLD-069)."""

from __future__ import annotations

from collections.abc import Sequence

# Kept free for the closing line that says what is left out.
FOOTER_CHARS = 300


def fitting(lines: Sequence[str], ceiling: int) -> int:
    """How many of `lines` fit under `ceiling` characters with a closing line; at least one."""
    if sum(map(len, lines)) + len(lines) <= ceiling - FOOTER_CHARS:
        return len(lines)
    room = ceiling - FOOTER_CHARS
    for count, line in enumerate(lines):
        room -= len(line) + 1
        if room < 0:
            return max(1, count)
    return len(lines)
