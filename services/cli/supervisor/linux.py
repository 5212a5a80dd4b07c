"""What the kernel is told about a process of the crew; elsewhere than on Linux, nothing."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36


def die_with(parent: int) -> None:
    """End this process when `parent`, which forked it, ends for whatever reason."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def hide_memory() -> None:
    """Close this process's memory, environment and files to others of the same user (TLS-246)."""
    _prctl(_PR_SET_DUMPABLE, 0)


def adopt_orphans() -> None:
    """Become the parent of processes whose own parent below this one ends."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def children() -> list[int]:
    """Processes whose parent is this one."""
    try:
        text = Path(f"/proc/self/task/{os.getpid()}/children").read_text("ascii")
    except OSError:
        return []
    return [int(pid) for pid in text.split()]


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)
