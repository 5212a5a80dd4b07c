"""The process above all services: starts them, starts them again, and ends them.

It has one thread and waits in one place. It holds no secret, runs no event loop and never makes a
channel or a server, because its children are forked from it.
"""

from __future__ import annotations

import os
import selectors
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from services.cli.supervisor import linux, programs
from services.cli.supervisor.logs import RotatingFile
from services.cli.supervisor.programs import Program

# How long a child that ended is waited for before it is started again; the last one repeats.
BACKOFF_SECONDS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0)
# The longest wait for a child that was ready in its last life: what was begun is to go on within 20 s.
READY_BACKOFF_SECONDS = 5.0
# After so many ends in a row a start is given up.
START_ATTEMPTS = 4
# A child that was ready for so long is a good one: its next end counts as the first.
STABLE_SECONDS = 30.0
# Together under the five seconds that a person waits after Ctrl-C.
SERVICES_STOP_SECONDS = 3.0
LAST_STOP_SECONDS = 1.2
_MAX_REPORT = 8192


class Stopped(Exception):
    """The person asked to stop while something was being waited for."""


class ProgramEnded(Exception):
    """A program ended before it was ready, or was not ready in time.

    Args:
        name: Which one.
        status: Exit code, or the negative number of the signal that killed it; None while it runs.
        sentence: What it said about it; empty when it said nothing.
        words: The last lines of its log.
    """

    def __init__(self, name: str, status: int | None, sentence: str, words: Sequence[str]) -> None:
        super().__init__(name, status)
        self.name = name
        self.status = status
        self.sentence = sentence
        self.words = words


@dataclass(slots=True)
class _Child:
    program: Program
    log: RotatingFile
    pid: int = 0
    ready: bool = False
    # In any of its lives.
    was_ready: bool = False
    started_at: float = 0.0
    failures: int = 0
    restart_at: float | None = None
    status: int | None = None
    said: bytes = b""
    pipes: dict[int, bool] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        line = self.said.partition(b"\n")[0]
        return line[1:].decode(errors="replace") if line.startswith(b"-") else ""


class Supervisor:
    """Children that are kept running until a stop is asked for.

    Args:
        logs: Folder of the log files.
        told: Called when a child that was ready ended, with its name, its status and the seconds
            until it is started again.
    """

    def __init__(self, logs: Path, told: Callable[[str, int, float], None]) -> None:
        self._logs = logs
        self._told = told
        self._children: dict[str, _Child] = {}
        self._selector = selectors.DefaultSelector()
        self._stopping = False
        self._signals, wakeup = os.pipe()
        for descriptor in (self._signals, wakeup):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._asked_to_stop)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._selector.register(self._signals, selectors.EVENT_READ)
        linux.adopt_orphans()
        linux.hide_memory()

    def start(self, program: Program) -> None:
        """Start a program and keep it running from here on."""
        child = _Child(program, RotatingFile(self._logs / f"{program.name}.log"))
        self._children[program.name] = child
        self._fork(child)

    def wait_ready(self, names: Iterable[str], seconds: float) -> None:
        """Wait until all named programs are ready.

        Raises:
            ProgramEnded: One ended first, or was not ready in time.
            Stopped: A stop was asked for.
        """
        waiting = [self._children[name] for name in names]
        deadline = time.monotonic() + seconds
        while not all(child.ready for child in waiting):
            for child in waiting:
                if child.status is not None and not child.was_ready:
                    raise self._ended(child)
            self._refuse_crash_loops()
            if time.monotonic() > deadline:
                raise self._ended(next(child for child in waiting if not child.ready))
            self._step(deadline)

    def run_to_end(self, program: Program) -> None:
        """Run a program that does one thing, and wait until it has done it.

        Raises:
            ProgramEnded: It did not end with 0.
            Stopped: A stop was asked for; the program is killed.
        """
        self.start(program)
        child = self._children[program.name]
        try:
            while child.status is None:
                self._step(None)
                self._refuse_crash_loops()
        finally:
            if child.pid:
                _kill(child.pid, signal.SIGKILL)
            del self._children[program.name]
        if child.status != 0:
            raise self._ended(child)

    def supervise(self) -> None:
        """Keep everything running until a stop is asked for."""
        while True:
            try:
                self._step(None)
            except Stopped:
                return

    def stop(self, last: str | None = None) -> None:
        """End everything in order, `last` (the database) after all others; leaves no process.

        A second request to stop ends what is left at once.
        """
        self._stopping = False
        others = [child for child in self._children.values() if child.program.name != last]
        self._end(others, SERVICES_STOP_SECONDS)
        self._end([child for child in self._children.values() if child not in others], LAST_STOP_SECONDS)
        for pid in linux.children():
            _kill(pid, signal.SIGKILL)
        while True:
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                return

    def pid(self, name: str) -> int:
        """The process id of a program; 0 while it is not running."""
        return self._children[name].pid

    def _asked_to_stop(self, *_: object) -> None:
        self._stopping = True

    def _fork(self, child: _Child) -> None:
        child.started_at = time.monotonic()
        try:
            started = programs.start(child.program)
        except OSError as error:
            # No process or descriptor is left on the machine: that passes.
            child.log.write(f"cannot be started: {error.strerror}\n".encode())
            self._note_end(child, error.errno or 1)
            return
        child.pid = started.pid
        child.ready = not child.program.reports
        child.was_ready = child.was_ready or child.ready
        child.status = child.restart_at = None
        child.said = b""
        for descriptor, is_report in ((started.reports, True), (started.output, False)):
            child.pipes[descriptor] = is_report
            self._selector.register(descriptor, selectors.EVENT_READ, child)

    def _step(self, deadline: float | None) -> None:
        """Wait for one thing to happen, and deal with it."""
        if self._stopping:
            raise Stopped
        due = [child.restart_at for child in self._children.values() if child.restart_at]
        moments = [*due, *([deadline] if deadline is not None else [])]
        timeout = max(0.0, min(moments) - time.monotonic()) + 0.001 if moments else None
        for key, _ in self._selector.select(timeout):
            if key.data is None:
                self._drain_signals()
            else:
                self._read(key.data, key.fd)
        self._collect()
        if self._stopping:
            raise Stopped
        for child in self._children.values():
            if child.restart_at is not None and child.restart_at <= time.monotonic():
                self._fork(child)

    def _drain_signals(self) -> None:
        try:
            while os.read(self._signals, 512):
                pass
        except BlockingIOError:
            return

    def _read(self, child: _Child, descriptor: int) -> None:
        try:
            data = os.read(descriptor, 65536)
        except BlockingIOError:
            return
        if not data:
            self._close(child, descriptor)
        elif child.pipes[descriptor]:
            child.said = (child.said + data)[:_MAX_REPORT]
            if child.said.startswith(b"+"):
                child.ready = child.was_ready = True
        else:
            child.log.write(data)

    def _close(self, child: _Child, descriptor: int) -> None:
        self._selector.unregister(descriptor)
        del child.pipes[descriptor]
        os.close(descriptor)

    def _collect(self) -> None:
        """Take note of every child that ended; a zombie would still look alive to others."""
        for pid, status in _reap():
            for child in self._children.values():
                if child.pid == pid:
                    self._note_end(child, status)

    def _note_end(self, child: _Child, status: int) -> None:
        for descriptor in list(child.pipes):
            self._read_rest(child, descriptor)
        lived = time.monotonic() - child.started_at
        if child.ready and lived >= STABLE_SECONDS:
            child.failures = 0
        delay = BACKOFF_SECONDS[min(child.failures, len(BACKOFF_SECONDS) - 1)]
        if child.ready:
            delay = min(delay, READY_BACKOFF_SECONDS)
        child.failures += 1
        child.pid = 0
        child.status = status
        child.restart_at = time.monotonic() + delay
        if child.was_ready and not self._stopping:
            self._told(child.program.name, status, delay)

    def _read_rest(self, child: _Child, descriptor: int) -> None:
        """What a child said last, unless somebody it started still holds the pipe."""
        for _ in range(64):
            if descriptor not in child.pipes:
                return
            before = len(child.said)
            self._read(child, descriptor)
            if descriptor in child.pipes and child.pipes[descriptor] and len(child.said) == before:
                break
        if descriptor in child.pipes:
            self._close(child, descriptor)

    def _refuse_crash_loops(self) -> None:
        """During a start a program that ends again and again ends the start."""
        for child in self._children.values():
            if child.failures >= START_ATTEMPTS:
                raise self._ended(child)

    def _ended(self, child: _Child) -> ProgramEnded:
        return ProgramEnded(child.program.name, child.status, child.sentence, child.log.tail(5))

    def _end(self, children: Sequence[_Child], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        for child in children:
            child.restart_at = None
            if child.pid:
                _kill(child.pid, child.program.stop_signal)
        while any(child.pid for child in children) and time.monotonic() < deadline and not self._stopping:
            for key, _ in self._selector.select(0.05):
                if key.data is None:
                    self._drain_signals()
                else:
                    self._read(key.data, key.fd)
            for pid, status in _reap():
                for child in self._children.values():
                    if child.pid == pid:
                        child.pid, child.status = 0, status
        for child in children:
            if child.pid:
                _kill(child.pid, signal.SIGKILL)


def _reap() -> list[tuple[int, int]]:
    """Children that ended, adopted ones included, with exit code or negative signal number."""
    ended: list[tuple[int, int]] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended.append((pid, os.waitstatus_to_exitcode(status)))


def _kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
