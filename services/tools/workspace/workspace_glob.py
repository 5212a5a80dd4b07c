"""The tool that finds files by the pattern of their path."""

from __future__ import annotations

import asyncio
from typing import Any

from services.common.toolhost.contract import (
    Run,
    ToolError,
    ToolResult,
    text_result,
)
from services.common.wording import Locale
from services.tools.workspace import arguments as given
from services.tools.workspace.explaining import explained
from services.tools.workspace.faults import WorkspaceFault
from services.tools.workspace.fitting import fitting
from services.tools.workspace.glob_pattern import PATTERN_CHARS, BadPattern, GlobPattern
from services.tools.workspace.interfaces import FileFinding
from services.tools.workspace.names import quoted, shown
from services.tools.workspace.reading_tool import ReadingTool
from services.tools.workspace.search_end import closing_lines

PATHS = 500
SECONDS = 30.0


class WorkspaceGlob(ReadingTool):
    """``workspace_glob(pattern, offset?)``.

    Args:
        files: Finds files by name, and nothing else.
    """

    name = "workspace_glob"
    kind = "search"
    modes = frozenset({"work"})
    required = ("pattern",)

    def __init__(self, files: FileFinding) -> None:
        super().__init__()
        self._files = files

    def parameters(self, locale: Locale) -> dict[str, Any]:
        """The JSON schema of each parameter, described in `locale`."""
        texts = self._texts
        return {
            "pattern": texts.parameter(
                locale, "pattern", type="string", minLength=1, maxLength=PATTERN_CHARS
            ),
            "offset": texts.parameter(locale, "offset", type="integer", minimum=0),
        }

    async def run(self, run: Run) -> ToolResult:
        """Find the files.

        Raises:
            ToolError: The pattern cannot be understood, or begins where nothing may be entered.
        """
        locale = run.context.locale
        pattern = given.text(run.arguments, "pattern", locale)
        offset = given.whole_number(run.arguments, "offset", locale, least=0, default=0) or 0
        try:
            wanted = GlobPattern(pattern)
            found = await self._files.find(
                run.context.workspace, wanted, offset=offset, count=PATHS, seconds=SECONDS
            )
        except BadPattern as problem:
            reason = self._texts.of(locale, f"bad.{problem}")
            raise ToolError(
                self._texts.of(locale, "bad_pattern", pattern=quoted(pattern), reason=reason)
            ) from None
        except WorkspaceFault as fault:
            raise explained(fault, pattern, locale) from None
        except asyncio.CancelledError:
            raise ToolError(self._texts.of(locale, "cancelled", pattern=quoted(pattern))) from None
        lines = [shown(path) for path in found.paths]
        count = fitting(lines, run.context.output_chars) if lines else 0
        more = found.end.more or count < len(lines)
        footer = closing_lines(found.end, locale, offset=offset, count=count, more=more)
        if not lines:
            key = "absent" if offset == 0 else "absent_beyond"
            lines = [self._texts.of(locale, key, pattern=quoted(pattern), offset=offset)]
            footer = footer if found.end.stopped or found.end.folders_left else []
        return text_result(
            "\n".join([*lines[: max(1, count)], *footer]),
            details={"offset": offset, "paths": count, "more": more, "stopped": found.end.stopped},
            absent=count == 0,
        )
