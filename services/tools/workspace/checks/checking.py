"""Running the checkers over the files of one call, within its time."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import orjson
import structlog

from services.common.wording import Locale, load
from services.tools.workspace.checks.finding import Finding
from services.tools.workspace.checks.languages import Language, language_of
from services.tools.workspace.checks.programs import Program, installed_programs
from services.tools.workspace.names import quoted

SECONDS = 5.0
FINDINGS = 20
# Larger files are not checked; a parser's memory is many times its text.
TEXT_BYTES = 1024**2
_BY_WORKER: frozenset[Language] = frozenset({"python", "json", "json_lines", "yaml", "toml", "xml", "html"})
_OUTPUT_BYTES = 256 * 1024
_AT_ONCE = 2

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Report:
    """What a check adds to a result: lines for the model, details for the product."""

    lines: Sequence[str] = ()
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Task:
    path: str
    text: str
    language: Language


class SyntaxChecks:
    """Checks files after they were written; the write stands whatever is found.

    Args:
        programs: Installed checkers by language; None looks for them.
    """

    def __init__(self, programs: Mapping[Language, Program] | None = None) -> None:
        self._programs = installed_programs() if programs is None else programs
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def check(self, files: Sequence[tuple[str, bytes]], locale: Locale) -> Report:
        """Check the files whose language is known, for at most `SECONDS`.

        A check that does not end in time or fails is left out with a line saying so (PIP-143).
        """
        tasks = [task for path, content in files if (task := self._task(path, content)) is not None]
        if not tasks:
            return Report()
        found: list[tuple[_Task, Finding]] = []
        unfinished = False
        try:
            async with asyncio.timeout(SECONDS), self._turns:
                found = await self._found(tasks)
        except (TimeoutError, OSError, ValueError) as error:
            _log.warning("a check did not finish", problem=type(error).__name__)
            unfinished = True
        return _report(found, unfinished, len(tasks) > 1, locale)

    def _task(self, path: str, content: bytes) -> _Task | None:
        if len(content) > TEXT_BYTES:
            return None
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            return None
        language = language_of(path, text)
        if language is None or not (language in _BY_WORKER or language in self._programs):
            return None
        return _Task(path, text, language)

    async def _found(self, tasks: Sequence[_Task]) -> list[tuple[_Task, Finding]]:
        found: list[tuple[_Task, Finding]] = []
        by_worker = [task for task in tasks if task.language in _BY_WORKER]
        if by_worker:
            request = orjson.dumps([[task.language, task.text] for task in by_worker])
            command = (sys.executable, "-I", "-m", "services.tools.workspace.checks.worker")
            answer, _ = await _piped(command, request)
            for task, findings in zip(by_worker, orjson.loads(answer), strict=True):
                found += [(task, Finding.at(*fields)) for fields in findings]
        for task in tasks:
            if task.language not in _BY_WORKER:
                program = self._programs[task.language]
                _, complaints = await _piped(program.command, task.text.encode())
                text = complaints.decode("utf-8", "replace")
                found += [(task, finding) for finding in program.findings(text)]
        order = {task.path: number for number, task in enumerate(tasks)}
        return sorted(found, key=lambda one: (order[one[0].path], one[1]))


async def _piped(command: Sequence[str], text: bytes) -> tuple[bytes, bytes]:
    """Give `text` to a program; what it writes to its output and its error output."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "NODE_OPTIONS": ""},
        cwd="/",
        limit=_OUTPUT_BYTES,
    )
    try:
        return await process.communicate(text)
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _report(
    found: Sequence[tuple[_Task, Finding]], unfinished: bool, several: bool, locale: Locale
) -> Report:
    def say(key: str, **values: object) -> str:
        return load("tools").text(locale, f"workspace.check.{key}", **values)

    lines = []
    if found:
        lines.append(say("heading"))
    for task, finding in found[:FINDINGS]:
        place = f"{finding.line}:{finding.column} {finding.message}"
        lines.append(f"{quoted(task.path)} {place}" if several else place)
    if len(found) > FINDINGS:
        lines.append(say("more", count=len(found) - FINDINGS))
    if unfinished:
        lines.append(say("unfinished", seconds=round(SECONDS)))
    findings = [
        {
            "path": task.path,
            "line": finding.line,
            "column": finding.column,
            "code": finding.code,
            "message": finding.message,
        }
        for task, finding in found[:FINDINGS]
    ]
    return Report(lines, {"findings": findings} if findings else {})
