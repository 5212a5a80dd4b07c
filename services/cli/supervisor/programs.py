"""What the supervisor starts, and what happens in the child before it is that."""

from __future__ import annotations

import gc
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from services.cli.supervisor import linux


class Report:
    """The child's way to say that it is ready, or why it is not going to be."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def ready(self) -> None:
        """The program answers."""
        self._send(b"+\n")

    def refused(self, sentence: str) -> None:
        """The program cannot start; `sentence` is for the person."""
        self._send(b"-" + sentence.replace("\n", " ").encode()[:4000] + b"\n")

    def _send(self, line: bytes) -> None:
        try:
            os.write(self._descriptor, line)
        except BrokenPipeError:
            # The supervisor is gone, and this process will be.
            return


@dataclass(frozen=True, slots=True)
class Program:
    """One program of the crew.

    Attributes:
        name: Also the name of its log file.
        main: Runs in the forked child, where everything it needs is made; returns the exit code.
            It may become another program by exec.
        reports: Whether it says by itself when it is ready; else it is once it is started.
        stop_signal: Asks it to end in order.
        keeps: Descriptors that this program alone inherits.
    """

    name: str
    main: Callable[[Report], int]
    reports: bool = True
    stop_signal: signal.Signals = signal.SIGTERM
    keeps: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Started:
    """A child that was just forked: its id, and the ends of the pipes it writes to."""

    pid: int
    reports: int
    output: int


def start(program: Program) -> Started:
    """Fork a child that is `program`.

    The calling process has one thread and has never made a channel, a server or an event loop:
    what those keep does not survive a fork.
    """
    report_read, report_write = os.pipe()
    output_read, output_write = os.pipe()
    parent = os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        os._exit(_child(program, parent, report_write, output_write))
    os.close(report_write)
    os.close(output_write)
    for descriptor in (report_read, output_read):
        os.set_blocking(descriptor, False)
    return Started(pid, report_read, output_read)


def _child(program: Program, parent: int, report: int, output: int) -> int:
    """Everything between the fork and the program; never returns into the parent's code."""
    try:
        # A session of its own: Ctrl-C in the terminal is for the supervisor alone.
        os.setsid()
        linux.die_with(parent)
        linux.hide_memory()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        _close_all_but({0, 1, 2, report, *program.keeps})
        return program.main(Report(report))
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        gc.unfreeze()
        sys.stdout.flush()
        sys.stderr.flush()


def _close_all_but(kept: set[int]) -> None:
    """Leave no descriptor of the supervisor open: not its lock, its pipes or anybody's secrets."""
    limit = os.sysconf("SC_OPEN_MAX")
    start = 0
    for descriptor in sorted(kept):
        # An empty range that begins at 0 is taken for everything by Python 3.11.
        if start < descriptor:
            os.closerange(start, descriptor)
        start = descriptor + 1
    os.closerange(start, limit if limit > 0 else 65536)
