"""The tool that searches the lines of files by a regular expression."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from services.common.toolhost.contract import (
    Arguments,
    Run,
    ToolError,
    ToolResult,
    text_result,
)
from services.common.wording import Locale
from services.tools.tool_texts import ToolTexts
from services.tools.workspace import arguments as given
from services.tools.workspace.explaining import explained
from services.tools.workspace.faults import WorkspaceFault
from services.tools.workspace.fitting import fitting
from services.tools.workspace.glob_pattern import PATTERN_CHARS, BadPattern, GlobPattern
from services.tools.workspace.interfaces import ContentQuery, ContentSearch
from services.tools.workspace.names import quoted, shown
from services.tools.workspace.reading_tool import ReadingTool
from services.tools.workspace.search_end import closing_lines

HITS = 200
SECONDS = 30.0


class WorkspaceGrep(ReadingTool):
    """``workspace_grep(pattern, path?, glob?, offset?)``.

    Args:
        contents: Searches files, and nothing else.
    """

    name = "workspace_grep"
    kind = "search"
    modes = frozenset({"work"})
    required = ("pattern",)
    guided = True

    def __init__(self, contents: ContentSearch) -> None:
        super().__init__()
        self._contents = contents

    def parameters(self, locale: Locale) -> dict[str, Any]:
        """The JSON schema of each parameter, described in `locale`."""
        texts = self._texts
        return {
            "pattern": texts.parameter(
                locale, "pattern", type="string", minLength=1, maxLength=PATTERN_CHARS
            ),
            "path": texts.parameter(locale, "path", type="string"),
            "glob": texts.parameter(locale, "glob", type="string", maxLength=PATTERN_CHARS),
            "offset": texts.parameter(locale, "offset", type="integer", minimum=0),
        }

    async def run(self, run: Run) -> ToolResult:
        """Search.

        Raises:
            ToolError: A pattern cannot be understood, or the start may not be entered.
        """
        locale = run.context.locale
        query = self._query(run.arguments, locale)
        try:
            found = await self._contents.search(run.context.workspace, query)
        except WorkspaceFault as fault:
            raise explained(fault, query.start, locale) from None
        except asyncio.CancelledError:
            raise ToolError(self._texts.of(locale, "cancelled", pattern=quoted(query.pattern))) from None
        lines = [f"{shown(hit.path)}:{hit.line}: {_on_one_line(hit.text)}" for hit in found.hits]
        count = fitting(lines, run.context.output_chars) if lines else 0
        more = found.end.more or count < len(lines)
        footer = closing_lines(found.end, locale, offset=query.offset, count=count, more=more)
        if not lines:
            key = "absent" if query.offset == 0 else "absent_beyond"
            lines = [self._texts.of(locale, key, pattern=quoted(query.pattern), offset=query.offset)]
            footer = footer if found.end != type(found.end)() else []
        elif more:
            footer.append(self._texts.of(locale, "narrow"))
        return text_result(
            "\n".join([*lines[: max(1, count)], *footer]),
            details={"offset": query.offset, "hits": count, "more": more, "stopped": found.end.stopped},
            absent=count == 0,
        )

    def _query(self, arguments: Arguments, locale: Locale) -> ContentQuery:
        pattern = given.text(arguments, "pattern", locale)
        glob = given.text(arguments, "glob", locale, default="")
        return ContentQuery(
            pattern=self._compiling(pattern, locale),
            start=given.text(arguments, "path", locale, default=".") or ".",
            wanted=self._glob(glob, locale) if glob else None,
            offset=given.whole_number(arguments, "offset", locale, least=0, default=0) or 0,
            count=HITS,
            seconds=SECONDS,
        )

    def _compiling(self, pattern: str, locale: Locale) -> str:
        """The pattern, which compiles (TLS-239)."""
        problem = ""
        if not pattern or len(pattern) > PATTERN_CHARS:
            problem = self._texts.of(locale, "bad.length")
        elif "[[:" in pattern:
            problem = self._texts.of(locale, "bad.posix")
        elif "\0" in pattern or "\n" in pattern:
            problem = self._texts.of(locale, "bad.line_break")
        else:
            try:
                re.compile(pattern)
            except (re.error, OverflowError, RecursionError) as error:
                problem = str(error)[:300]
        if problem:
            raise ToolError(self._texts.of(locale, "bad_pattern", pattern=quoted(pattern), reason=problem))
        return pattern

    def _glob(self, glob: str, locale: Locale) -> GlobPattern:
        try:
            return GlobPattern(glob, anywhere=True)
        except BadPattern as problem:
            reason = ToolTexts("workspace_glob").of(locale, f"bad.{problem}")
            raise ToolError(
                ToolTexts("workspace_glob").of(locale, "bad_pattern", pattern=quoted(glob), reason=reason)
            ) from None


def _on_one_line(text: str) -> str:
    return text.replace("\r", "\\r")
