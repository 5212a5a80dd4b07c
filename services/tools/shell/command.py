"""Running one command under its guard, from the start to the last process (tools.md 9.1)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import structlog

from services.common.toolhost.contract import WorkspaceGrant
from services.tools.shell.capture import CapturedOutput, OutputCapture
from services.tools.shell.guard.plan import END_FOR_CANCELLATION, END_FOR_TIMEOUT, Limits, Outcome, Plan

_log = structlog.get_logger(__name__)
T = TypeVar("T")

# TLS-244; not configurable (TLS-245).
ENVIRONMENT_NAMES = ("PATH", "HOME", "LANG", "LC_ALL", "TERM", "TMPDIR", "USER", "SHELL")
# The kernel's limit of one argument, its closing NUL included.
MAX_COMMAND_BYTES = 131_071

# The guard needs half a second of grace and up to three to end everything.
_END_SECONDS = 6.0
# What a process that escaped the guard still holds open is not waited for.
_DRAIN_SECONDS = 1.0
_CHUNK = 1024 * 1024
# Beyond what is kept, an endless printer is slowed to this pause a chunk, so that it leaves the
# service its processor.
_OVERFLOW_PAUSE = 0.01
_PROGRESS_SECONDS = 0.5
_PROGRESS_CHARS = 2_000

_ROOT = str(Path(__file__).resolve().parents[3])
# Appended, so that nothing here can stand before the standard library.
_BOOT = "import sys; sys.path.append(sys.argv[1]); from services.tools.shell.guard.main import main; main()"

Watcher = Callable[[str], Awaitable[None]]


class GuardLost(Exception):
    """The guard ended without a word: what became of the command is unknown."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """A command that has ended, with everything it started.

    Attributes:
        seconds: How long it ran.
    """

    output: CapturedOutput
    outcome: Outcome
    seconds: float


def shell_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables a command gets: those of the list that the service has (TLS-244)."""
    return {name: environment[name] for name in ENVIRONMENT_NAMES if name in environment}


def shell_program() -> str:
    """The shell that reads commands: bash where there is one, else the system's `sh`."""
    for path in ("/bin/bash", "/usr/bin/bash"):
        if os.access(path, os.X_OK):
            return path
    return "/bin/sh"


def plain_plan(grant: WorkspaceGrant, arguments: Sequence[str]) -> Plan:
    """The plan of an unconfined command in the grant's workspace."""
    limits = grant.limits
    return Plan(
        arguments=tuple(arguments),
        directory=grant.root,
        environment=shell_environment(os.environ),
        umask=grant.umask,
        limits=Limits(limits.cpu_seconds, limits.memory_bytes, limits.processes, limits.file_bytes),
    )


async def run_command(plan: Plan, *, timeout: float, watcher: Watcher | None = None) -> CommandResult:
    """Run `plan` and return when its shell, and all it started, has ended.

    Cancelling the caller ends the command within 2 seconds and still returns, with the outcome
    `cancelled` and what was captured: the cancellation is consumed.

    Args:
        timeout: Seconds until the command is ended.
        watcher: Told now and then what was printed last.

    Raises:
        GuardLost: The guard was killed or broke.
        OSError: No process could be started.
    """
    return await _Running(plan, timeout, watcher).run()


class _Running:
    def __init__(self, plan: Plan, timeout: float, watcher: Watcher | None) -> None:
        self._plan = plan
        self._timeout = timeout
        self._watcher = watcher
        self._capture = OutputCapture()

    async def run(self) -> CommandResult:
        started = time.monotonic()
        with contextlib.ExitStack() as ends:
            output, output_end = _pipe(ends)
            report, report_end = _pipe(ends)
            control_end, control = _pipe(ends)
            plan = ends.enter_context(os.fdopen(os.memfd_create("plan"), "w+b"))
            plan.write(self._plan.to_json())
            plan.flush()
            process, cancelled = await _uninterrupted(
                self._start(output_end, plan.fileno(), control_end.fileno(), report_end.fileno())
            )
            for file in (output_end, report_end, control_end):
                file.close()
            tasks = [
                reporting := asyncio.create_task(_read_all(report)),
                reading := asyncio.create_task(self._read_output(output)),
                telling := asyncio.create_task(self._tell()),
            ]
            try:
                await self._wait(reporting, control, cancelled=cancelled)
                if not reporting.done():
                    process.kill()
                telling.cancel()
                await _uninterrupted(asyncio.wait({reading}, timeout=_DRAIN_SECONDS))
                await _uninterrupted(process.wait())
            finally:
                # What tells the guard to end the command, whatever happened here.
                control.close()
                for task in tasks:
                    task.cancel()
            if not reporting.done() or not (word := reporting.result()):
                raise GuardLost
        return CommandResult(self._capture.finish(), Outcome.from_json(word), time.monotonic() - started)

    async def _start(self, output: BinaryIO, *descriptors: int) -> asyncio.subprocess.Process:
        ports = self._plan.ports_ruleset
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", "-c", _BOOT, _ROOT, *(str(number) for number in descriptors)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=[*descriptors, *([ports] if ports >= 0 else [])],
            start_new_session=True,
            env=shell_environment(os.environ),
            cwd="/",
        )

    async def _wait(self, reporting: asyncio.Task[bytes], control: BinaryIO, *, cancelled: bool) -> None:
        """Wait for the guard's report; tell it to end the command at the time-out or a cancellation."""
        until = time.monotonic() + self._timeout
        while not (reporting.done() or cancelled) and (left := until - time.monotonic()) > 0:
            cancelled = await _interruptible(reporting, left)
        if reporting.done():
            return
        with contextlib.suppress(BrokenPipeError):
            os.write(control.fileno(), END_FOR_CANCELLATION if cancelled else END_FOR_TIMEOUT)
        until = time.monotonic() + _END_SECONDS
        while not reporting.done() and (left := until - time.monotonic()) > 0:
            await _interruptible(reporting, left)

    async def _read_output(self, output: BinaryIO) -> None:
        async with _open_reader(output) as reader:
            while data := await reader.read(_CHUNK):
                self._capture.feed(data)
                if self._capture.overflowing:
                    await asyncio.sleep(_OVERFLOW_PAUSE)

    async def _tell(self) -> None:
        told = 0
        while self._watcher is not None:
            await asyncio.sleep(_PROGRESS_SECONDS)
            if self._capture.total_chars == told:
                continue
            told = self._capture.total_chars
            try:
                await self._watcher(self._capture.latest(_PROGRESS_CHARS))
            except Exception:
                # Who watches never changes what happens (PIP-129).
                _log.warning("shell_progress_failed", exc_info=True)
                return


def _pipe(ends: contextlib.ExitStack) -> tuple[BinaryIO, BinaryIO]:
    reader, writer = os.pipe()
    return (
        ends.enter_context(os.fdopen(reader, "rb", buffering=0)),
        ends.enter_context(os.fdopen(writer, "wb", buffering=0)),
    )


@contextlib.asynccontextmanager
async def _open_reader(file: BinaryIO) -> AsyncIterator[asyncio.StreamReader]:
    reader = asyncio.StreamReader(limit=_CHUNK)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), file
    )
    try:
        yield reader
    finally:
        transport.close()


async def _read_all(file: BinaryIO) -> bytes:
    async with _open_reader(file) as reader:
        return await reader.read()


async def _interruptible(task: asyncio.Task[bytes], seconds: float) -> bool:
    """Wait for `task`; says whether the caller was cancelled meanwhile, and consumes that (PIP-041)."""
    try:
        await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        _consume_cancellation()
        return True
    return False


async def _uninterrupted(work: Coroutine[Any, Any, T]) -> tuple[T, bool]:
    """Finish `work` through cancellations of the caller; says whether there was one."""
    task = asyncio.create_task(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            _consume_cancellation()
            cancelled = True
    return task.result(), cancelled


def _consume_cancellation() -> None:
    if task := asyncio.current_task():
        task.uncancel()
