"""The preferred form of the sandbox: bubblewrap's namespaces, from a policy to its arguments."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

from services.tools.shell.sandbox.policy import SandboxPolicy, is_beneath

_TEMP_PLACES = ("/tmp", "/var/tmp")  # noqa: S108 - places inside the sandbox
# Mounted afresh within, so nothing of the machine's is seen there.
_FRESH_PLACES = (*_TEMP_PLACES, "/run", "/var/run", "/dev", "/proc")
_SHARED_MEMORY_BYTES = 64 * 1024 * 1024
_TOO_OLD_FOR_SIZE = "--size"


def find_bubblewrap() -> str | None:
    """The path of bubblewrap, or None where it is not installed."""
    return shutil.which("bwrap", path="/usr/bin:/bin:/usr/local/bin")


@cache
def _can_limit_size(program: str) -> bool:
    shown = subprocess.run([program, "--help"], capture_output=True, timeout=10, check=False)
    return _TOO_OLD_FOR_SIZE in (shown.stdout + shown.stderr).decode(errors="replace")


def bubblewrap_arguments(program: str, policy: SandboxPolicy) -> tuple[str, ...]:
    """Program and options under which a command sees the machine as the policy says.

    The whole tree is there read-only (TLS-282); then its own devices, processes and temporary
    directories; then what may be written; last what is hidden, so that nothing uncovers it.
    """
    arguments = [program, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
    arguments += ["--unshare-cgroup-try", "--cap-drop", "ALL", "--die-with-parent"]
    if not policy.network:
        arguments.append("--unshare-net")
    arguments += ["--ro-bind", "/", "/", "--dev", "/dev", "--remount-ro", "/dev"]
    if _can_limit_size(program):
        arguments += ["--size", str(_SHARED_MEMORY_BYTES), "--tmpfs", "/dev/shm"]  # noqa: S108
    # As root, the kernel's settings under /proc/sys would be the user's own files.
    arguments += ["--proc", "/proc", "--remount-ro", "/proc"]
    arguments += _without_sockets_of_services(policy)
    for place in _TEMP_PLACES:
        if os.path.isdir(place):
            arguments += ["--bind", str(policy.temp_dir), place]
    arguments += ["--ro-bind", str(policy.workspace), str(policy.workspace)]
    for path in policy.writable:
        arguments += ["--bind", str(path), str(path)]
    for path in policy.hidden:
        arguments += _hide(path, policy)
    return tuple(arguments)


def _without_sockets_of_services(policy: SandboxPolicy) -> list[str]:
    """Empty `/run`, where buses, engines and agents listen; name resolution keeps its one file."""
    arguments: list[str] = []
    for place in ("/run", "/var/run"):
        if os.path.isdir(place) and not os.path.islink(place):
            arguments += ["--tmpfs", place]
            resolver = os.path.realpath("/etc/resolv.conf")
            if policy.network and is_beneath(Path(resolver), Path(place)) and os.path.isfile(resolver):
                arguments += ["--ro-bind", resolver, resolver]
            arguments += ["--remount-ro", place]
    return arguments


def _hide(path: Path, policy: SandboxPolicy) -> list[str]:
    within_writable = any(is_beneath(path, place) for place in policy.writable)
    if not is_beneath(path, policy.workspace) and any(
        is_beneath(path, Path(place)) for place in _FRESH_PLACES
    ):
        return []
    if path.is_dir() or (within_writable and not path.exists()):
        return ["--perms", "0000", "--tmpfs", str(path), "--remount-ro", str(path)]
    if path.exists():
        # Bound without the right to use devices: opening it is refused.
        return ["--ro-bind", "/dev/null", str(path)]
    return []
