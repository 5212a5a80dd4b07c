"""The machine: disk, memory, time, and what commands of agents can be locked into."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from services.cli.doctor.findings import Finding, bad, good, note
from services.cli.home.checks import MIN_FREE_BYTES
from services.common.settings.config import machine_timezone

_MEGABYTE = 1024 * 1024
_COMFORTABLE_BYTES = 2 * 1024 * _MEGABYTE
_SYS_LANDLOCK_CREATE_RULESET = 444
_LANDLOCK_VERSION = 1
# Signals and sockets of others are out of reach from this version on (Linux 6.12).
_LANDLOCK_SCOPES = 6
# Before this a clock was never set.
_EARLIEST = 1_735_689_600


def machine(home: Path) -> Iterator[Finding]:
    """Findings about the machine the crew runs on."""
    yield good("python", version=platform.python_version(), machine=platform.machine())
    yield _disk(home)
    yield from _shared_memory()
    yield from _sandbox()
    yield _clock()
    docker = shutil.which("docker")
    yield good("docker", path=docker) if docker else note("no_docker")


def _disk(home: Path) -> Finding:
    there = next(path for path in (home, *home.parents) if os.path.isdir(path))
    free = shutil.disk_usage(there).free
    values = {"free": free // _MEGABYTE, "folder": there, "needed": MIN_FREE_BYTES // _MEGABYTE}
    if free < MIN_FREE_BYTES:
        return bad("disk_full", **values)
    return good("disk", **values) if free >= _COMFORTABLE_BYTES else note("disk_low", **values)


def _shared_memory() -> Iterator[Finding]:
    if not os.path.isdir("/dev/shm"):  # noqa: S108  the kernel's, not a temporary file
        return
    free = shutil.disk_usage("/dev/shm").free // _MEGABYTE  # noqa: S108
    yield good("shared_memory", free=free) if free >= 64 else note("shared_memory_low", free=free)


def _sandbox() -> Iterator[Finding]:
    """Which of the two forms there is, and why not the better one."""
    if sys.platform == "darwin":
        yield good("sandbox_macos")
        return
    problem = _bubblewrap_problem()
    abi = _landlock_abi()
    if problem is None:
        yield good("sandbox_bubblewrap")
    elif abi >= _LANDLOCK_SCOPES:
        yield note("sandbox_landlock", abi=abi, problem=problem)
    else:
        yield bad("sandbox_none", abi=abi, problem=problem, kernel=platform.release())


def _bubblewrap_problem() -> str | None:
    """Why bubblewrap cannot be used; None when it can."""
    path = shutil.which("bwrap")
    if path is None:
        return "bubblewrap is not installed"
    try:
        done = subprocess.run(
            [path, "--unshare-all", "--ro-bind", "/", "/", "true"],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return type(error).__name__
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["?"])[0][:200]


def _landlock_abi() -> int:
    """The version of Landlock in this kernel; 0 without."""
    if sys.platform != "linux":
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    found = libc.syscall(
        ctypes.c_long(_SYS_LANDLOCK_CREATE_RULESET),
        None,
        ctypes.c_size_t(0),
        ctypes.c_uint32(_LANDLOCK_VERSION),
    )
    return max(0, int(found))


def _clock() -> Finding:
    if time.time() < _EARLIEST:
        return bad("clock", now=time.strftime("%Y-%m-%d %H:%M", time.gmtime()))
    return good("zone", zone=machine_timezone(), now=time.strftime("%Y-%m-%d %H:%M"))
