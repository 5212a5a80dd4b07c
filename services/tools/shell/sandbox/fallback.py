"""The second form of the sandbox: what a policy means to Landlock, path by path.

Landlock only allows, so what a command may read is listed: the system's programs and settings, the
interpreter that runs the crew, the directories of `PATH`, and the workspace without what is hidden.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from services.tools.shell.sandbox.policy import SandboxPolicy, is_beneath

_SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix/store"),
    *("/proc", "/sys/devices/system/cpu", "/sys/fs/cgroup"),
)
# Without the terminals: those of the machine lie in the same directory as new ones (TLS-309).
DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom"))
# Of one directory that holds something hidden; what comes after is not granted.
_MAX_ENTRIES = 10_000


def readable_paths(policy: SandboxPolicy, search_path: str) -> tuple[str, ...]:
    """What a command may read and run from.

    Args:
        policy: Of the command.
        search_path: The command's `PATH`.
    """
    roots = [*_SYSTEM, sys.base_prefix, sys.prefix, *filter(os.path.isabs, search_path.split(os.pathsep))]
    # Git ends when these are there and cannot be read; its credentials lie elsewhere.
    roots += [os.path.expanduser(f"~/{name}") for name in (".gitconfig", ".config/git/config")]
    if policy.network:
        roots.append("/etc/resolv.conf")
    real = dict.fromkeys(Path(os.path.realpath(root)) for root in roots if os.path.exists(root))
    return tuple(
        str(path) for root in (*real, policy.workspace) for path in _without_hidden(root, policy.hidden)
    )


def writable_paths(policy: SandboxPolicy) -> tuple[str, ...]:
    """What a command may change: its paths and its temporary directory."""
    beneath = [path for root in policy.writable for path in _without_hidden(root, policy.hidden)]
    return tuple(str(path) for path in (*beneath, policy.temp_dir))


def _without_hidden(root: Path, hidden: Sequence[Path]) -> Iterator[Path]:
    """`root`, or its parts that hold nothing hidden.

    A directory on the way to something hidden is not granted itself: it cannot be listed, and nothing
    new can be made in it.
    """
    if any(is_beneath(root, path) for path in hidden):
        return
    if not any(is_beneath(path, root) for path in hidden):
        yield root
        return
    with os.scandir(root) as entries:
        below = [Path(entry.path) for entry in islice(entries, _MAX_ENTRIES) if not entry.is_symlink()]
    for path in below:
        yield from _without_hidden(path, hidden)
