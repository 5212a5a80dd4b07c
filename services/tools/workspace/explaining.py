"""Putting what stood in the way of a file operation into words."""

from __future__ import annotations

from collections.abc import Sequence

from services.common.toolhost.contract import ToolError
from services.common.wording import Locale, load
from services.tools.workspace.faults import WorkspaceFault
from services.tools.workspace.names import quoted, shown
from services.tools.workspace.text.diff import diff
from services.tools.workspace.text.kinds import NotText


def say(locale: Locale, key: str, /, **values: object) -> str:
    """A text all workspace tools share, under ``workspace``."""
    return load("tools").text(locale, f"workspace.{key}", **values)


def explained(problem: WorkspaceFault | NotText, path: str, locale: Locale) -> ToolError:
    """The error a caller is given: what was tried, what stands in the way, what to do instead."""
    if isinstance(problem, NotText):
        kind = say(locale, f"kind.{problem.kind}")
        return ToolError(say(locale, "error.not_text", path=quoted(path), kind=kind))
    return ToolError(
        say(locale, f"error.{problem.kind}", path=quoted(problem.path), about=shown(problem.about)),
        refused=problem.hard,
    )


def difference(before: bytes | None, after: bytes | None, locale: Locale) -> str:
    """A short diff of two states of a file, or why there is none to show."""
    if before is None or after is None:
        return say(locale, "diff.not_kept")
    try:
        changes = diff(before.decode("utf-8"), after.decode("utf-8"))
    except UnicodeDecodeError:
        return say(locale, "diff.not_text")
    return with_more(changes.lines, changes.more, locale)


def with_more(lines: Sequence[str], more: int, locale: Locale) -> str:
    """Lines of a diff, and how many are not among them."""
    if not more:
        return "\n".join(lines)
    return "\n".join([*lines, say(locale, "diff.more", count=more)])
