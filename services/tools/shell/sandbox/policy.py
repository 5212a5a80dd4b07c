"""What one sandboxed command may touch, from the grant of its call."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from services.common.toolhost.contract import WorkspaceGrant

# TLS-299: X servers that listen on TCP, by display number.
_X_PORTS = range(6000, 6064)


class PolicyRefused(Exception):
    """The grant cannot be made into a sandbox; the command must not run.

    Args:
        key: Catalogue key of the sentence.
        values: What the sentence names.
    """

    def __init__(self, key: str, **values: str) -> None:
        super().__init__(key)
        self.key = key
        self.values = values


@dataclass(frozen=True, slots=True)
class SandboxPolicy:
    """The limits of one sandboxed command. Every path is real: absolute and without links.

    Attributes:
        writable: Files and directories the command may change; the temporary directory not included.
        hidden: Paths it can neither read nor write, whether or not they exist.
        closed_ports: TCP ports it cannot connect to at any address.
    """

    workspace: Path
    writable: tuple[Path, ...]
    hidden: tuple[Path, ...]
    temp_dir: Path
    network: bool
    closed_ports: frozenset[int]


def is_sandboxed(grant: WorkspaceGrant) -> bool:
    """Whether commands under this grant run in the sandbox (TLS-276)."""
    return not grant.shell_network or bool(grant.shell_write_paths)


def sandbox_policy(
    grant: WorkspaceGrant, agent_id: str, *, hidden: Iterable[str] = (), closed_ports: Iterable[int] = ()
) -> SandboxPolicy:
    """Make the policy of one command, creating its writable and temporary directories (TLS-304).

    Args:
        grant: What the call may touch.
        agent_id: Whose temporary directory to use when the grant names none.
        hidden: Paths of the service itself, hidden besides those of the grant.
        closed_ports: Ports closed besides those of the grant.

    Raises:
        PolicyRefused: A writable path leaves the workspace or is a link, or there is no workspace.
    """
    workspace = Path(os.path.realpath(grant.root))
    if not workspace.is_dir():
        raise PolicyRefused("error.shell.no_workspace", path=grant.root)
    temp_dir = _temp_dir(grant.temp_dir, agent_id)
    hidden_paths = {os.path.realpath(path) for path in (*grant.private_paths, *hidden)}
    # Temporary directories of agents lie side by side (TLS-302).
    if not is_beneath(workspace, temp_dir.parent):
        hidden_paths.add(str(temp_dir.parent))
    return SandboxPolicy(
        workspace=workspace,
        writable=_writable_paths(workspace, grant.shell_write_paths, grant.umask),
        hidden=tuple(sorted(Path(path) for path in hidden_paths)),
        temp_dir=temp_dir,
        network=grant.shell_network,
        closed_ports=frozenset((*grant.closed_ports, *closed_ports, *_X_PORTS))
        if grant.shell_network
        else frozenset(),
    )


def is_beneath(path: Path, root: Path) -> bool:
    """Whether `path` is `root` or lies below it, by whole components."""
    return path == root or root in path.parents


def _writable_paths(workspace: Path, entries: Sequence[str], umask: int) -> tuple[Path, ...]:
    paths: list[Path] = []
    for entry in entries:
        path = Path(os.path.normpath(workspace / entry))
        if "\0" in entry or not is_beneath(path, workspace):
            raise PolicyRefused("error.shell.write_path_outside", path=entry)
        paths.append(path)
    # What lies in another writable path is writable through it, and a command could have put
    # something else in its place: it is not looked at.
    outer = [path for path in paths if not any(other != path and is_beneath(path, other) for other in paths)]
    for path in dict.fromkeys(outer):
        # A link within the workspace could pass through a place that a command may change.
        if os.path.realpath(path) != str(path):
            raise PolicyRefused("error.shell.write_path_outside", path=str(path.relative_to(workspace)))
        if not path.exists():
            _make_directories(path, workspace, 0o2777 & ~umask)
    return tuple(dict.fromkeys(outer))


def _make_directories(path: Path, workspace: Path, mode: int) -> None:
    for directory in reversed([path, *(above for above in path.parents if is_beneath(above, workspace))]):
        try:
            os.mkdir(directory)
        except FileExistsError:
            if not directory.is_dir() or directory.is_symlink():
                raise PolicyRefused("error.shell.write_path_outside", path=str(path)) from None
        else:
            # FLD-054: whatever the service's own umask is.
            os.chmod(directory, mode)


def _temp_dir(named: str, agent_id: str) -> Path:
    """The agent's own temporary directory, for its user alone.

    Raises:
        PolicyRefused: Somebody else made it, or it is not a directory.
    """
    if named:
        path = Path(named)
    else:
        name = hashlib.sha256(agent_id.encode()).hexdigest()[:32]
        path = Path(tempfile.gettempdir()) / f"my-agent-crew-shell-{os.geteuid()}" / name
    for directory in (path.parent, path):
        try:
            os.makedirs(directory, mode=0o700, exist_ok=True)
            status = os.lstat(directory)
        except OSError as error:
            raise PolicyRefused("error.shell.no_temp_dir", path=str(directory)) from error
        made_here = directory == path or not named
        if not stat.S_ISDIR(status.st_mode) or (made_here and status.st_uid != os.geteuid()):
            raise PolicyRefused("error.shell.no_temp_dir", path=str(directory))
    return Path(os.path.realpath(path))
