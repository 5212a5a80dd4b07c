"""Finding files of a workspace on disk by the pattern of their path."""

from __future__ import annotations

import asyncio
import os
import stat
import threading
from contextlib import closing

from services.common.toolhost.contract import WorkspaceGrant
from services.tools.workspace.disk.places import locate, opened_root
from services.tools.workspace.disk.stoppable import stoppable
from services.tools.workspace.disk.walking import FoundFile, TreeWalk
from services.tools.workspace.faults import WorkspaceFault
from services.tools.workspace.glob_pattern import GlobPattern
from services.tools.workspace.interfaces import FoundFiles, SearchEnd

# Walks that run at once, over all conversations: each keeps a thread busy.
_AT_ONCE = 4


class DiskFinding:
    """Finds files by name; implements `FileFinding`."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def find(
        self, grant: WorkspaceGrant, wanted: GlobPattern, *, offset: int, count: int, seconds: float
    ) -> FoundFiles:
        """Find the files whose path matches `wanted`, from its fixed prefix on."""
        async with self._turns:
            return await stoppable(lambda stop: self._find(grant, wanted, offset, count, seconds, stop))

    def _find(
        self,
        grant: WorkspaceGrant,
        wanted: GlobPattern,
        offset: int,
        count: int,
        seconds: float,
        stop: threading.Event,
    ) -> FoundFiles:
        start = locate(grant, wanted.fixed_prefix or ".")
        paths: list[str] = []
        seen, more = 0, False
        try:
            with opened_root(start) as root:
                walk = TreeWalk(grant, root, start, wanted, seconds, stop.is_set)
                with closing(walk.files()) as files:
                    for file in files:
                        if not wanted.matches(file.path) or not _is_file(grant, file):
                            continue
                        seen += 1
                        if seen > offset + count:
                            more = True
                            break
                        if seen > offset:
                            paths.append(file.path)
        except WorkspaceFault as fault:
            if fault.kind != "missing":
                raise
            return FoundFiles((), SearchEnd())
        return FoundFiles(paths, SearchEnd(more, walk.out_of_time, walk.folders_left))


def _is_file(grant: WorkspaceGrant, file: FoundFile) -> bool:
    """Whether it can be read as a file: of links, those that end at one inside (TLS-242)."""
    if not file.is_link:
        return True
    try:
        return stat.S_ISREG(os.stat(locate(grant, file.path).absolute).st_mode)
    except (WorkspaceFault, OSError):
        return False
