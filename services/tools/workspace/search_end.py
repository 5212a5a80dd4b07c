"""How a search closes: how much there was, what was not looked at, how to go on (TLS-430)."""

from __future__ import annotations

from services.common.wording import Locale
from services.tools.workspace.explaining import say
from services.tools.workspace.interfaces import SearchEnd


def closing_lines(end: SearchEnd, locale: Locale, *, offset: int, count: int, more: bool) -> list[str]:
    """The lines after the results of a search.

    Args:
        end: How the search ended.
        locale: Of the lines.
        offset: Results left out before those shown.
        count: Results shown.
        more: Whether there are results after those shown.
    """
    lines = []
    if end.stopped:
        lines.append(say(locale, "search.stopped", folders=end.folders_left))
    elif end.folders_left:
        lines.append(say(locale, "search.folders_left", folders=end.folders_left))
    if end.files_too_large:
        lines.append(say(locale, "search.files_too_large", count=end.files_too_large))
    if more:
        lines.append(say(locale, "search.more", first=offset + 1, last=offset + count, next=offset + count))
    elif not end.stopped and not end.folders_left:
        lines.append(say(locale, "search.total", total=offset + count))
    return lines
