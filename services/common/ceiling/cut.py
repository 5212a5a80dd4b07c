"""Cutting text so that the mark says exactly what is missing (TLS-112 to 114, PIP-141, FLD-069)."""

from __future__ import annotations

from services.common.wording import Locale, load

# Lines kept of each end of a command's output.
END_LINES = 50


def cut_head(text: str, ceiling: int, locale: Locale) -> str:
    """The opening of `text`, then a line with the number of characters left out."""
    if len(text) <= ceiling:
        return text
    kept = ceiling
    while True:
        mark = load("common").text(locale, "ceiling.head", count=len(text) - kept)
        room = ceiling - len(mark) - 1
        if room <= 0:
            return mark[:ceiling]
        if room >= kept:
            return f"{text[:kept]}\n{mark}"
        kept = room


def cut_to_lines(text: str, ceiling: int, locale: Locale, total: int) -> str:
    """The opening lines of a file, then how much is left out and where to read on (TLS-432).

    Args:
        text: Its lines from the first on.
        ceiling: In characters, for all of it.
        locale: Of the mark.
        total: How many lines it has.
    """
    if len(text) <= ceiling:
        return text

    def mark(kept: int, last: int) -> str:
        return load("common").text(
            locale, "ceiling.lines", count=len(text) - kept, last=last, total=total, next=last + 1
        )

    room = ceiling - len(mark(0, total))
    kept = text.rfind("\n", 0, max(0, room)) + 1
    if not kept:
        # Not even the first line fits, and nothing can be read from the middle of a line on.
        return cut_head(text, ceiling, locale)
    return text[:kept] + mark(kept, text.count("\n", 0, kept))


def cut_head_and_tail(text: str, ceiling: int, locale: Locale, *, status_line: bool = True) -> str:
    """The first and last lines of `text`, one line between them saying what is left out.

    At most `END_LINES` of each end, fewer when they do not fit.

    Args:
        text: Of a command.
        ceiling: In characters, for all of it.
        locale: Of the line between them.
        status_line: The last line says how the command ended: it is none of the output's lines, and
            is kept whole as long as it fits at all.
    """
    if len(text) <= ceiling:
        return text
    body = text.rstrip("\n")
    if status_line:
        body = body.rpartition("\n")[0]
    trailer = text[len(body) :]
    # The widest mark this text can need, so that the kept parts do not depend on its digits.
    widest = len(_mark(text, 0, text.count("\n") + 1, locale)) + 2
    room = ceiling - len(trailer) - widest
    if not body or room < 0:
        return _cut_middle(text, ceiling, locale)
    head = _first_lines(body, room // 2)
    tail = _last_lines(body[len(head) :], room - len(head))
    if not head and not tail:
        head, tail = body[: room // 2], body[len(body) - (room - room // 2) :]
    gap = body[len(head) : len(body) - len(tail)]
    if not gap:
        return cut_head(text, ceiling, locale)
    kept = len(head) + len(tail) + len(trailer)
    lines = gap.strip("\n").count("\n") + 1
    mark = _mark(text, kept, lines, locale)
    return f"{_ended(head)}{mark}{_begun(tail)}{trailer}"


def _cut_middle(text: str, ceiling: int, locale: Locale) -> str:
    widest = len(_mark(text, 0, text.count("\n") + 1, locale)) + 2
    room = ceiling - widest
    if room <= 0:
        return cut_head(text, ceiling, locale)
    tail = (room + 1) // 2
    head = room - tail
    gap = text[head : len(text) - tail]
    mark = _mark(text, head + tail, gap.count("\n") + 1, locale)
    return f"{_ended(text[:head])}{mark}{_begun(text[len(text) - tail :])}"


def _mark(text: str, kept: int, lines: int, locale: Locale) -> str:
    return load("common").text(locale, "ceiling.head_tail", lines=lines, count=len(text) - kept)


def _first_lines(text: str, room: int) -> str:
    """As many whole lines of the beginning as fit, each with its line break."""
    kept = 0
    for line in text.split("\n", END_LINES)[:END_LINES]:
        end = kept + len(line) + 1
        if end > room or end > len(text):
            break
        kept = end
    return text[:kept]


def _last_lines(text: str, room: int) -> str:
    """As many whole lines of the end as fit, each with the line break before it."""
    kept = 0
    for line in reversed(text.rsplit("\n", END_LINES)[1:]):
        kept_with = kept + len(line) + 1
        if kept_with > room:
            break
        kept = kept_with
    return text[len(text) - kept :]


def _ended(head: str) -> str:
    return head if not head or head.endswith("\n") else head + "\n"


def _begun(tail: str) -> str:
    return tail if not tail or tail.startswith("\n") else "\n" + tail
