"""The tool that reads a text file or some of its lines."""

from __future__ import annotations

import asyncio
import posixpath
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
from services.tools.workspace.fitting import FOOTER_CHARS
from services.tools.workspace.interfaces import FileIdentity, FileReading
from services.tools.workspace.names import quoted
from services.tools.workspace.reading_tool import ReadingTool
from services.tools.workspace.seen import KEPT_CONTENT_BYTES, SeenFiles
from services.tools.workspace.text.kinds import NotText
from services.tools.workspace.text.line_window import LineWindow

# A whole file up to this is given whole, for the ceiling to shorten and the original to be kept;
# of a longer one come the lines that fit.
WHOLE_CHARS = 1_000_000
_LEAST_ROOM = 200


class WorkspaceRead(ReadingTool):
    """``workspace_read(path, offset?, limit?)``.

    Args:
        files: Reads a file, and nothing else.
        seen: Is told what the conversation now knows.
    """

    name = "workspace_read"
    kind = "read"
    required = ("path",)
    guided = True

    def __init__(self, files: FileReading, seen: SeenFiles) -> None:
        super().__init__()
        self._files = files
        self._seen = seen

    def parameters(self, locale: Locale) -> dict[str, Any]:
        """The JSON schema of each parameter, described in `locale`."""
        texts = self._texts
        return {
            "path": texts.parameter(locale, "path", type="string", minLength=1),
            "offset": texts.parameter(locale, "offset", type="integer", minimum=1),
            "limit": texts.parameter(locale, "limit", type="integer", minimum=1),
        }

    async def run(self, run: Run) -> ToolResult:
        """Read the file, or the lines asked for.

        Raises:
            ToolError: It is missing, closed, outside, no text file, or has no such line.
        """
        call, locale = run.context, run.context.locale
        path = given.text(run.arguments, "path", locale)
        offset = given.whole_number(run.arguments, "offset", locale, least=1)
        limit = given.whole_number(run.arguments, "limit", locale, least=1)
        room = max(_LEAST_ROOM, call.output_chars - FOOTER_CHARS)
        asked_whole = offset is None and limit is None
        try:
            window = LineWindow(offset or 1, limit, WHOLE_CHARS if asked_whole else room, KEPT_CONTENT_BYTES)
            file = await self._read(call, path, window)
            if asked_whole and not _complete(window):
                window = LineWindow(1, None, room)
                file = await self._read(call, path, window)
        except (WorkspaceFault, NotText) as problem:
            raise explained(problem, path, locale) from None
        except asyncio.CancelledError:
            raise ToolError(self._texts.of(locale, "cancelled", path=quoted(path))) from None
        return self._shown(window, file, path, locale)

    async def _read(self, call: CallContext, path: str, window: LineWindow) -> FileIdentity:
        file = await self._files.read(call.workspace, path, window)
        if file.whole:
            window.end()
            absolute = posixpath.join(call.workspace.root, file.path)
            await self._seen.saw(call.conversation_id, absolute, window.sha256, window.raw)
        return file

    def _shown(self, window: LineWindow, file: FileIdentity, path: str, locale: Locale) -> ToolResult:
        if file.whole and not window.total:
            text = self._texts.of(locale, "empty", path=quoted(path))
            return text_result(text, details={"path": file.path, "total_lines": 0}, absent=True)
        if window.last < window.first:
            raise ToolError(
                self._texts.of(locale, "beyond", offset=window.first, path=quoted(path), total=window.total),
                details={"path": file.path, "total_lines": window.total},
            )
        details = {
            "path": file.path,
            "bytes": file.size,
            "first_line": window.first,
            "last_line": window.last,
            "total_lines": window.total,
        }
        if _complete(window):
            return text_result(window.text, details=details)
        return text_result(f"{self._heading(window, locale)}\n{window.text}", details=details)

    def _heading(self, window: LineWindow, locale: Locale) -> str:
        """Which lines follow, of how many, and how to read on (TLS-220, TLS-432)."""
        total = window.total if window.ended else self._texts.of(locale, "more_than", count=window.total)
        values = {"first": window.first, "last": window.last, "total": total, "next": window.last + 1}
        if window.line_cut:
            return self._texts.of(locale, "line_cut", count=len(window.text), **values)
        key = "window" if window.last < window.total else "window_to_end"
        return self._texts.of(locale, key, **values)


def _complete(window: LineWindow) -> bool:
    return window.ended and window.first == 1 and window.last == window.total and not window.line_cut
