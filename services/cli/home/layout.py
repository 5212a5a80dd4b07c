"""Where the parts of a home are, and its first making (AGT-002, AGT-006)."""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from services.cli.home.checks import check_writable
from services.cli.postgres.cluster import Cluster
from services.cli.texts import texts
from services.common.start import StartError
from services.common.variables import home_of

# What the processes need; the crew's own folders and files are made by the orchestrator.
_FOLDERS = ("logs", "backups", "state/tools")


@dataclass(frozen=True, slots=True)
class Layout:
    """The folders of one home. Making the object touches nothing."""

    home: Path
    run: Path
    # Where the agents' workspaces are when a deployment keeps them outside of the home.
    workspaces: Path | None = None

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Layout:
        """The home of ``MY_AGENT_HOME`` and its folder of sockets."""
        home = home_of(environ)
        workspaces = environ.get("MY_AGENT_WORKSPACES_DIR", "").strip()
        return cls(home, _run_folder(home, environ), Path(workspaces) if workspaces else None)

    @property
    def config(self) -> Path:
        """``config.yaml``."""
        return self.home / "config.yaml"

    @property
    def env(self) -> Path:
        """The file of keys."""
        return self.home / "env"

    @property
    def logs(self) -> Path:
        """Log files of the services."""
        return self.home / "logs"

    @property
    def backups(self) -> Path:
        """Dumps made before migrations."""
        return self.home / "backups"

    @property
    def cluster(self) -> Cluster:
        """The database of this home."""
        return self.cluster_in(self.home)

    def cluster_in(self, home: Path) -> Cluster:
        """A database whose files are below `home`, answering at this home's socket."""
        return Cluster(home / "postgres", self.run, home / "secrets" / "postgres")

    def secrets(self, service: str) -> Path:
        """The secrets of one service, which no other one is told."""
        return self.home / "secrets" / service

    def socket(self, service: str) -> str:
        """The address of a service on this machine."""
        return f"unix:{self.run / f'{service}.sock'}"

    def prepare(self) -> None:
        """Make what is missing.

        Raises:
            StartError: The home or the folder of sockets cannot be made, written or trusted.
        """
        check_writable(self.home)
        if (self.home / ".restoring").exists():
            raise StartError("error.home.half_restored", catalogue=texts(), home=self.home)
        for folder in _FOLDERS:
            path = self.home / folder
            if not path.is_dir():
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in (self.home / "workspace", self.home / "agents"):
            if path.exists():
                check_writable(path)
        self.prepare_run()

    def prepare_run(self) -> None:
        """Make the folder of sockets, this user's alone.

        Raises:
            StartError: It cannot be made, or somebody else prepared it.
        """
        _make_private(self.run)


@contextmanager
def locked(layout: Layout) -> Iterator[None]:
    """Hold the home for this process alone; the kernel gives it back however the process ends.

    Raises:
        StartError: Another process holds it.
    """
    descriptor = os.open(layout.home / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "?"
            raise StartError("error.home.in_use", catalogue=texts(), home=layout.home, pid=holder) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _run_folder(home: Path, environ: Mapping[str, str]) -> Path:
    """A short path, since the path of a socket has at most 107 bytes."""
    if environ.get("MY_AGENT_RUN_DIR"):
        return Path(environ["MY_AGENT_RUN_DIR"])
    mark = hashlib.sha256(os.fsencode(home)).hexdigest()[:12]
    base = environ.get("XDG_RUNTIME_DIR", "")
    if base and os.access(base, os.W_OK):
        return Path(base) / f"my-agent-crew-{mark}"
    return Path("/tmp") / f"my-agent-crew-{os.geteuid()}-{mark}"  # noqa: S108  checked by _make_private


def _make_private(path: Path) -> None:
    """Make a folder that is this user's alone, or refuse one that somebody else prepared."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.lstat()
    except OSError as error:
        raise StartError(
            "error.home.no_run_folder", catalogue=texts(), folder=path, problem=error.strerror
        ) from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise StartError("error.home.foreign_run_folder", catalogue=texts(), folder=path)
    path.chmod(0o700)
