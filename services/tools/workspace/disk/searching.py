"""Searching the lines of a workspace's files on disk, by ripgrep or by Python.

The walk is ours in both ways, and the search program is handed files that are already open. So
both ways look into the same files in the same order (TLS-235), and no path can be swapped for a
link between finding a file and reading it.
"""

from __future__ import annotations

import asyncio
import os
import stat
import threading
import time
from collections.abc import Generator
from contextlib import closing, suppress

from services.common.toolhost.contract import WorkspaceGrant
from services.tools.workspace.disk.matching import Engine, OpenFile, PythonEngine
from services.tools.workspace.disk.places import Place, locate, opened_root
from services.tools.workspace.disk.reading import open_regular
from services.tools.workspace.disk.stoppable import stoppable
from services.tools.workspace.disk.walking import FoundFile, TreeWalk
from services.tools.workspace.faults import WorkspaceFault
from services.tools.workspace.interfaces import ContentQuery, Hit, Hits, SearchEnd

# Larger files are not searched, and the answer says how many there were.
FILE_BYTES = 32 * 1024**2
# A file with a NUL byte in its beginning is not text.
_HEAD_BYTES = 8192
# Files handed over to one run of the search program.
BATCH_FILES = 200
# Searches that run at once, over all conversations: each holds a batch of open files.
_AT_ONCE = 3
_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC


class DiskSearch:
    """Searches files; implements `ContentSearch`.

    Args:
        engine: What matches lines; for patterns it does not understand Python does.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._python = PythonEngine()
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def search(self, grant: WorkspaceGrant, query: ContentQuery) -> Hits:
        """Find the lines that match, until there are enough or time is up."""
        ends = time.monotonic() + query.seconds
        start = await stoppable(lambda _: locate(grant, query.start))
        async with self._turns:
            engine = self._engine if await self._engine.understands(query.pattern) else self._python
            batches = _Batches(grant, query, start, ends)
            try:
                return await _collected(engine, query, batches, ends)
            finally:
                batches.close()


async def _collected(engine: Engine, query: ContentQuery, batches: _Batches, ends: float) -> Hits:
    hits: list[Hit] = []
    wanted = query.offset + query.count
    stopped = False
    while len(hits) <= wanted and not stopped:
        files = await stoppable(batches.next)
        if not files:
            break
        try:
            found, stopped = await engine.match(
                query.pattern, files, wanted + 1 - len(hits), ends - time.monotonic()
            )
        finally:
            for file in files:
                os.close(file.descriptor)
        hits += found
    # The engine runs out of time among the files of at least one folder.
    unsearched = max(1, batches.folders_waiting) if stopped else 0
    end = SearchEnd(
        more=len(hits) > wanted,
        stopped=stopped or batches.out_of_time,
        folders_left=batches.folders_left + unsearched,
        files_too_large=batches.too_large,
    )
    return Hits(hits[query.offset : wanted], end)


class _Batches:
    """Opens the files to be searched, some at a time."""

    def __init__(self, grant: WorkspaceGrant, query: ContentQuery, start: Place, ends: float) -> None:
        self._grant = grant
        self._query = query
        self._start = start
        self._ends = ends
        self._stop = threading.Event()
        self._tree: TreeWalk | None = None
        self._files = self._opened()
        self.too_large = 0

    @property
    def out_of_time(self) -> bool:
        """Whether the walk ended before the tree did."""
        return self._tree is not None and self._tree.out_of_time

    @property
    def folders_left(self) -> int:
        """Folders known and not looked into."""
        return self._tree.folders_left if self._tree is not None else 0

    @property
    def folders_waiting(self) -> int:
        """Folders that the walk, where it stands, has yet to finish."""
        return self._tree.folders_waiting if self._tree is not None else 0

    def next(self, stop: threading.Event) -> list[OpenFile]:
        """The next open files, for the caller to close; empty at the end.

        Raises:
            WorkspaceFault: The start is not there, or is no file or folder.
        """
        self._stop = stop
        batch: list[OpenFile] = []
        try:
            for file in self._files:
                batch.append(file)
                if len(batch) >= BATCH_FILES:
                    break
        except BaseException:
            for file in batch:
                os.close(file.descriptor)
            raise
        return batch

    def close(self) -> None:
        """End the walk."""
        self._files.close()

    def _opened(self) -> Generator[OpenFile, None, None]:
        try:
            with opened_root(self._start) as root:
                try:
                    descriptor, _ = open_regular(root, self._start.path, self._start.shown)
                except WorkspaceFault as fault:
                    if fault.kind != "is_directory":
                        raise
                else:
                    if self._searchable(descriptor):
                        yield OpenFile(self._start.path, descriptor)
                    return
                yield from self._walked(root)
        except WorkspaceFault as fault:
            # A workspace nobody has written to yet holds nothing.
            if fault.kind != "missing" or self._start.path:
                raise

    def _walked(self, root: int) -> Generator[OpenFile, None, None]:
        seconds = self._ends - time.monotonic()
        self._tree = TreeWalk(
            self._grant, root, self._start, self._query.wanted, seconds, lambda: self._stop.is_set()
        )
        with closing(self._tree.files()) as found:
            for file in found:
                descriptor = self._open(file)
                if descriptor is not None:
                    yield OpenFile(file.path, descriptor)

    def _open(self, file: FoundFile) -> int | None:
        wanted = self._query.wanted
        if file.is_link or (wanted is not None and not wanted.matches(file.path)):
            return None
        with suppress(OSError):
            descriptor = os.open(file.name, _OPEN, dir_fd=file.folder)
            if self._searchable(descriptor):
                return descriptor
        return None

    def _searchable(self, descriptor: int) -> bool:
        """Whether an open file is text of a bearable size; closes it if not."""
        status = os.fstat(descriptor)
        good = stat.S_ISREG(status.st_mode) and status.st_size > 0
        if good and status.st_size > FILE_BYTES:
            self.too_large += 1
            good = False
        if good and b"\0" not in os.pread(descriptor, _HEAD_BYTES, 0):
            return True
        os.close(descriptor)
        return False
