"""Walking a workspace on disk as a stream: in order of path, in bounded memory and time (FLD-070)."""

from __future__ import annotations

import os
import posixpath
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass

from services.common.toolhost.contract import WorkspaceGrant
from services.tools.workspace.disk.beneath import open_beneath
from services.tools.workspace.disk.places import ClosedPlaces, Place
from services.tools.workspace.disk.stoppable import Stopped
from services.tools.workspace.glob_pattern import GlobPattern

# What nobody looks for and what there is much of (TLS-236).
SKIPPED = frozenset({".git", ".venv", "node_modules", "__pycache__", "dist", "build"})
# Names held at once over all open levels; about 50 MB.
HELD_NAMES = 250_000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A name that is a file or a link."""

    # File descriptor of its folder; good until the next file is asked for.
    folder: int
    name: str
    # Relative to the workspace.
    path: str
    is_link: bool


class TreeWalk:
    """The files below one folder, in order of path. Links to folders are not followed.

    Args:
        grant: Of the call; its private paths are passed over silently (TLS-207).
        root: File descriptor of the workspace's root.
        start: Where to begin.
        wanted: Folders in which nothing can match are not entered.
        seconds: After these the walk ends.
        stop: Asked between names; true ends it at once.
    """

    def __init__(
        self,
        grant: WorkspaceGrant,
        root: int,
        start: Place,
        wanted: GlobPattern | None,
        seconds: float,
        stop: Callable[[], bool],
    ) -> None:
        self._closed = ClosedPlaces(grant)
        self._root = root
        self._start = start
        self._wanted = wanted
        self._ends = time.monotonic() + seconds
        self._stop = stop
        self._held = 0
        self._levels: list[_Level] = []
        # Folders known and not looked into.
        self.folders_left = 0
        self.out_of_time = False

    @property
    def folders_waiting(self) -> int:
        """Folders that the walk, where it stands, has yet to look into or to finish."""
        return sum(level.folders_waiting for level in self._levels)

    def files(self) -> Generator[FoundFile, None, None]:
        """Walk. Close it to give back what it holds."""
        levels = self._levels
        try:
            self._enter(levels, self._start.path)
            while levels:
                level = levels[-1]
                if not level.names or self._over():
                    self._leave(levels.pop())
                    continue
                name = level.names.pop()
                self._held -= 1
                path = posixpath.join(level.path, name)
                if name.endswith("/"):
                    if self._enterable(path[:-1]):
                        # One open folder is enough: a tree may be deeper than there are descriptors.
                        level.close()
                        self._enter(levels, path[:-1])
                elif not self._closed.holds(posixpath.join(self._start.root, path)):
                    folder = level.opened(self._root)
                    if folder is not None:
                        yield FoundFile(folder, name, path, name in level.links)
        finally:
            for level in levels:
                level.close()

    def _over(self) -> bool:
        if self._stop():
            raise Stopped
        self.out_of_time = self.out_of_time or time.monotonic() > self._ends
        return self.out_of_time

    def _enterable(self, path: str) -> bool:
        if posixpath.basename(path) in SKIPPED:
            return False
        if self._wanted is not None and not self._wanted.may_lie_below(path):
            return False
        return not self._closed.holds(posixpath.join(self._start.root, path))

    def _enter(self, levels: list[_Level], path: str) -> None:
        """Read a folder's names, if it can be opened and may be."""
        level = _Level(path)
        try:
            folder = level.opened(self._root)
        except OSError:
            self.folders_left += 1
            return
        if folder is None or self._closed.is_one(os.fstat(folder)):
            level.close()
            return
        if not level.read(HELD_NAMES - self._held, self._over):
            self.folders_left += 1
        self._held += len(level.names)
        levels.append(level)

    def _leave(self, level: _Level) -> None:
        self._held -= len(level.names)
        self.folders_left += level.folders_waiting
        level.close()


class _Level:
    """A folder on the way down, and what is still to be visited of it, last first."""

    __slots__ = ("_folder", "links", "names", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self.names: list[str] = []
        self.links: set[str] = set()
        self._folder: int | None = None

    @property
    def folders_waiting(self) -> int:
        """Folders in it that are still to be visited, and itself while it has files that are."""
        folders = sum(name.endswith("/") for name in self.names)
        return folders + (len(self.names) > folders)

    def opened(self, root: int) -> int | None:
        """Its file descriptor; None when it is gone.

        Raises:
            OSError: It cannot be opened.
        """
        if self._folder is None:
            try:
                self._folder = open_beneath(root, self.path, _FOLDER)
            except FileNotFoundError:
                return None
        return self._folder

    def read(self, room: int, over: Callable[[], bool]) -> bool:
        """Read at most `room` names; whether that was all of them."""
        assert self._folder is not None
        whole = True
        with os.scandir(self._folder) as found:
            for entry in found:
                if len(self.names) >= room or (len(self.names) % 1000 == 999 and over()):
                    whole = False
                    break
                if entry.is_dir(follow_symlinks=False):
                    # With the slash a folder sorts where its paths do.
                    self.names.append(f"{entry.name}/")
                elif entry.is_symlink():
                    self.names.append(entry.name)
                    self.links.add(entry.name)
                elif entry.is_file(follow_symlinks=False):
                    self.names.append(entry.name)
        self.names.sort(reverse=True)
        return whole

    def close(self) -> None:
        """Give the descriptor back; it is opened again when needed."""
        if self._folder is not None:
            os.close(self._folder)
            self._folder = None
