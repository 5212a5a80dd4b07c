"""The tool that lists one directory."""

from __future__ import annotations

import asyncio
from typing import Any

from services.common.toolhost.contract import (
    CallContext,
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
from services.tools.workspace.interfaces import DirectoryListing, DirectoryPage, Entry
from services.tools.workspace.names import quoted, shown
from services.tools.workspace.reading_tool import ReadingTool

# Entries of one answer; the ceiling is mostly reached before.
ENTRIES = 2000


class WorkspaceList(ReadingTool):
    """``workspace_list(path?, offset?)``.

    Args:
        directories: Lists a directory, and nothing else.
    """

    name = "workspace_list"
    kind = "read"

    def __init__(self, directories: DirectoryListing) -> None:
        super().__init__()
        self._directories = directories

    def parameters(self, locale: Locale) -> dict[str, Any]:
        """The JSON schema of each parameter, described in `locale`."""
        texts = self._texts
        return {
            "path": texts.parameter(locale, "path", type="string"),
            "offset": texts.parameter(locale, "offset", type="integer", minimum=0),
        }

    async def run(self, run: Run) -> ToolResult:
        """List the directory, as many entries as fit.

        Raises:
            ToolError: It is missing, closed, outside, or no directory.
        """
        locale = run.context.locale
        path = given.text(run.arguments, "path", locale, default=".") or "."
        offset = given.whole_number(run.arguments, "offset", locale, least=0, default=0) or 0
        try:
            page = await self._directories.page(run.context.workspace, path, offset=offset, count=ENTRIES)
        except WorkspaceFault as fault:
            raise explained(fault, path, locale) from None
        except asyncio.CancelledError:
            raise ToolError(self._texts.of(locale, "cancelled", path=quoted(path))) from None
        return self._shown(page, path, offset, run.context)

    def _shown(self, page: DirectoryPage, path: str, offset: int, context: CallContext) -> ToolResult:
        locale = context.locale
        if not page.total:
            text = self._texts.of(locale, "empty", path=quoted(path))
            return text_result(text, details={"path": page.path, "total": 0}, absent=True)
        if offset >= page.total:
            raise ToolError(
                self._texts.of(locale, "beyond", offset=offset, path=quoted(path), total=page.total)
            )
        lines = [self._line(entry, locale) for entry in page.entries]
        count = fitting(lines, context.output_chars)
        if count == page.total and not page.stopped:
            footer = []
        else:
            key = "stopped" if page.stopped else "rest" if offset + count < page.total else "last"
            footer = [
                self._texts.of(
                    locale, key, first=offset + 1, last=offset + count, total=page.total, next=offset + count
                )
            ]
        return text_result(
            "\n".join([*lines[:count], *footer]),
            details={"path": page.path, "offset": offset, "entries": count, "total": page.total},
        )

    def _line(self, entry: Entry, locale: Locale) -> str:
        name = shown(entry.name)
        match entry.kind:
            case "directory":
                return f"{name}/"
            case "file":
                return self._texts.of(locale, "file", name=name, size=entry.size)
            case "link":
                return self._texts.of(locale, "link", name=name)
            case "special":
                return self._texts.of(locale, "special", name=name)
