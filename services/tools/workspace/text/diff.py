"""A short unified diff of two texts, in bounded time."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

LINES = 40
LINE_CHARS = 300
# Comparing line by line takes time with the product of both sides, and more when lines repeat.
_COMPARED = 1_000_000
_CONTEXT = 3


@dataclass(frozen=True, slots=True)
class Diff:
    """The first lines of a diff, headings of hunks included."""

    lines: Sequence[str]
    # Lines of the diff that are not in `lines`.
    more: int

    @property
    def text(self) -> str:
        """The lines as one text."""
        return "\n".join(self.lines)


def diff(before: str, after: str, limit: int = LINES) -> Diff:
    """What changes from `before` to `after`, at most `limit` lines of it (TLS-229)."""
    old, new = _lines(before), _lines(after)
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    # The unchanged ends are left out before comparing, but for the context that is shown.
    start = max(0, head - _CONTEXT)
    cut = max(0, tail - _CONTEXT)
    old_part = old[start : len(old) - cut]
    new_part = new[start : len(new) - cut]
    if len(old_part) * len(new_part) > _COMPARED:
        whole = _as_replaced(old_part, new_part, start)
    else:
        whole = _compared(old_part, new_part, start)
    return Diff([_cut(line) for line in whole[:limit]], max(0, len(whole) - limit))


def _lines(text: str) -> list[str]:
    """The lines of a text; a last one without a line break says so, or it could not be told apart."""
    lines = text.split("\n")
    last = lines.pop()
    if last:
        lines.append(f"{last}\n\\ No newline at end of file")
    return lines


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    count = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        count += 1
    return count


def _compared(old: Sequence[str], new: Sequence[str], start: int) -> list[str]:
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=True)
    lines = []
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        (_, old_from, _, new_from, _), (_, _, old_to, _, new_to) = group[0], group[-1]
        lines.append(_heading(start + old_from, old_to - old_from, start + new_from, new_to - new_from))
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                lines += [f" {line}" for line in old[i1:i2]]
            else:
                lines += [f"-{line}" for line in old[i1:i2]]
                lines += [f"+{line}" for line in new[j1:j2]]
    return lines


def _as_replaced(old: Sequence[str], new: Sequence[str], start: int) -> list[str]:
    return [
        _heading(start, len(old), start, len(new)),
        *(f"-{line}" for line in old),
        *(f"+{line}" for line in new),
    ]


def _heading(old_start: int, old_count: int, new_start: int, new_count: int) -> str:
    return f"@@ -{old_start + (old_count > 0)},{old_count} +{new_start + (new_count > 0)},{new_count} @@"


def _cut(line: str) -> str:
    return line if len(line) <= LINE_CHARS else f"{line[: LINE_CHARS - 1]}…"
