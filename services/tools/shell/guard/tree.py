"""The processes a command has started: finding, counting and ending them."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass

_TICKS = os.sysconf("SC_CLK_TCK")
_PAUSE = 0.005


@dataclass(frozen=True, slots=True)
class Process:
    """One entry of the process table.

    Attributes:
        cpu_seconds: Its own time and that of children it has waited for.
    """

    pid: int
    parent: int
    group: int
    ended: bool
    cpu_seconds: float


def last_pid() -> int:
    """The id given to the newest process: tells cheaply whether many were started."""
    return int(_load()[4])


def tasks_on_machine() -> int:
    """All processes and threads there are now."""
    return int(_load()[3].partition(b"/")[2])


def _load() -> list[bytes]:
    with open("/proc/loadavg", "rb") as file:
        return file.read().split()


def take_precedence() -> None:
    """Run before everything else on the machine, where this process may: only root's may.

    There the kernel holds no user limit against a fork bomb, which otherwise would leave its guard
    too little time to end it.
    """
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))


def descendants(root: int) -> list[Process]:
    """Every process below `root`. A subreaper's orphans are among them."""
    children: dict[int, list[Process]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (process := _read(int(name))) is not None:
            children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    waiting = [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found.extend(below)
        waiting.extend(process.pid for process in below)
    return found


def _read(pid: int) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    # The program's name is in brackets and may hold blanks and brackets.
    fields = text[text.rfind(b")") + 2 :].split()
    return Process(
        pid,
        int(fields[1]),
        int(fields[2]),
        fields[0] in (b"Z", b"X"),
        sum(int(field) for field in fields[11:15]) / _TICKS,
    )


def end_all_in_scope(seconds: float) -> int:
    """Kill everything this process may signal, which a Landlock scope makes the command's alone.

    Returns:
        How many children were still there after `seconds`.
    """
    deadline = time.monotonic() + seconds
    while True:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        if not reap():
            return 0
        if time.monotonic() > deadline:
            return len(descendants(os.getpid()))
        time.sleep(_PAUSE)


def end_descendants(seconds: float) -> int:
    """Kill every descendant of this process, with its process group, until none is left.

    A group goes in one step that no fork escapes; single ones are stopped first, so that they cannot
    outrun the list.

    Returns:
        How many were still there after `seconds`: they run under rights this process has not.
    """
    deadline = time.monotonic() + seconds
    while True:
        reap()
        alive = [process for process in descendants(os.getpid()) if not process.ended]
        if not alive:
            reap()
            return 0
        for group in {process.group for process in alive}:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
        for step in (signal.SIGSTOP, signal.SIGKILL):
            for process in alive:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(process.pid, step)
        if time.monotonic() > deadline:
            return len(alive)
        time.sleep(_PAUSE)


def reap() -> bool:
    """Collect children that have ended; False when there are no children at all."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True
