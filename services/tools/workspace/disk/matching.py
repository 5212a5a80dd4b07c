"""The programs that match lines: ripgrep where there is one, Python's own where not.

Both run as a process of their own that is ended when time is up: a pattern that backtracks without
end cannot outlast it (TLS-238). Both write ``path NUL line:text`` and are read by the same code.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from services.tools.workspace.interfaces import Hit

# Of one line; the answer shows where it is, not all it holds.
SHOWN_CHARS = 300
# What the programs write of one line, in bytes.
_WRITTEN_BYTES = 2000
_MATCHER = Path(__file__).with_name("matcher.py")
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
# What ripgrep takes for something else than Python does: word ends, sets in sets and their
# operators, possessive repetition.
_READ_DIFFERENTLY = re.compile(r"\\[<>]|\[[^\]]*(?:\[|--|&&|~~|\|\|)|[*+?}]\+|\\b\{")
_REMEMBERED = 256


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A file to be searched."""

    path: str
    descriptor: int


class SearchBroke(Exception):
    """The program that matches lines ended before its work was done."""


class Engine(Protocol):
    """A program that matches lines."""

    async def understands(self, pattern: str) -> bool:
        """Whether it finds what Python would find by this pattern."""

    async def match(
        self, pattern: str, files: Sequence[OpenFile], count: int, seconds: float
    ) -> tuple[list[Hit], bool]:
        """At most `count` matching lines in order, and whether time ran out."""


def installed_engine() -> Engine:
    """ripgrep if it is installed, else Python."""
    program = shutil.which("rg")
    return RipgrepEngine(program) if program else PythonEngine()


class RipgrepEngine:
    """Matches by ripgrep.

    Args:
        program: Path of ``rg``.
    """

    def __init__(self, program: str) -> None:
        self._command = (
            program,
            "--no-config",
            "--color=never",
            "--no-heading",
            "--with-filename",
            "--line-number",
            "--null",
            "--text",
            "--crlf",
            "--case-sensitive",
            "--no-mmap",
            "--threads=1",
            f"--max-columns={_WRITTEN_BYTES}",
            "--max-columns-preview",
        )
        self._understood: dict[str, bool] = {}

    async def understands(self, pattern: str) -> bool:
        """Whether ripgrep takes the pattern, and in Python's sense."""
        if _READ_DIFFERENTLY.search(pattern):
            return False
        if pattern not in self._understood:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                f"--regexp={pattern}",
                "/dev/null",
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                env=_ENVIRONMENT,
            )
            if len(self._understood) >= _REMEMBERED:
                self._understood.clear()
            # 1: ran and matched nothing; 2: could not make sense of it.
            self._understood[pattern] = await process.wait() == 1
        return self._understood[pattern]

    async def match(
        self, pattern: str, files: Sequence[OpenFile], count: int, seconds: float
    ) -> tuple[list[Hit], bool]:
        """At most `count` matching lines in order, and whether time ran out."""
        command = (*self._command, f"--max-count={count}", f"--regexp={pattern}", "--")
        # 1: nothing matched; 2: some file could not be read to its end.
        return await _run(command, files, count, seconds, good={0, 1, 2})


class PythonEngine:
    """Matches by Python's ``re``, in a process that can be ended."""

    async def understands(self, pattern: str) -> bool:
        """Always: the pattern was compiled before."""
        return True

    async def match(
        self, pattern: str, files: Sequence[OpenFile], count: int, seconds: float
    ) -> tuple[list[Hit], bool]:
        """At most `count` matching lines in order, and whether time ran out."""
        command = (sys.executable, "-I", "-S", str(_MATCHER), pattern, str(count), str(_WRITTEN_BYTES))
        return await _run(command, files, count, seconds, good={0})


async def _run(
    command: Sequence[str], files: Sequence[OpenFile], count: int, seconds: float, *, good: set[int]
) -> tuple[list[Hit], bool]:
    paths = {f"/dev/fd/{file.descriptor}".encode(): file.path for file in files}
    process = await asyncio.create_subprocess_exec(
        *command,
        *(name.decode() for name in paths),
        pass_fds=[file.descriptor for file in files],
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=_ENVIRONMENT,
    )
    assert process.stdout is not None
    hits: list[Hit] = []
    ended = False
    try:
        async with asyncio.timeout(max(seconds, 0.0)):
            while len(hits) < count:
                line = await process.stdout.readline()
                if not line:
                    ended = True
                    break
                name, _, rest = line.rstrip(b"\n").partition(b"\0")
                number, _, text = rest.partition(b":")
                hits.append(Hit(paths[name], int(number), _shown(text)))
    except TimeoutError:
        return hits, True
    finally:
        if not ended:
            with suppress(ProcessLookupError):
                process.kill()
        code = await process.wait()
    if code == -signal.SIGXCPU:
        return hits, True
    if ended and code not in good:
        # What it had not come to would look like what does not match.
        raise SearchBroke(code)
    return hits, False


def _shown(line: bytes) -> str:
    text = line.removesuffix(b"\r").decode("utf-8", "replace")
    return text if len(text) <= SHOWN_CHARS else f"{text[: SHOWN_CHARS - 1]}…"
