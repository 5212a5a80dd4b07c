"""Listing one directory of a workspace on disk, however many names are in it."""

from __future__ import annotations

import os
import stat
import threading
import time

from services.common.toolhost.contract import WorkspaceGrant
from services.tools.workspace.disk.beneath import open_beneath
from services.tools.workspace.disk.places import locate, opened_root
from services.tools.workspace.disk.stoppable import Stopped, stoppable
from services.tools.workspace.faults import WorkspaceFault
from services.tools.workspace.interfaces import DirectoryPage, Entry

SECONDS = 30.0
# Names held beyond those of the page, before the ones too far down the alphabet are let go.
_SLACK = 10_000


class DiskListing:
    """Lists directories; implements `DirectoryListing`."""

    async def page(self, grant: WorkspaceGrant, path: str, *, offset: int, count: int) -> DirectoryPage:
        """Some entries of the directory at `path`, in order of name."""
        return await stoppable(lambda stop: self._page(grant, path, offset, count, stop))

    def _page(
        self, grant: WorkspaceGrant, path: str, offset: int, count: int, stop: threading.Event
    ) -> DirectoryPage:
        place = locate(grant, path)
        try:
            with opened_root(place) as root:
                directory = open_beneath(root, place.path, os.O_RDONLY | os.O_DIRECTORY)
                try:
                    names, total, stopped = _first_names(directory, offset + count, stop)
                    entries = [_entry(directory, name) for name in names[offset:]]
                finally:
                    os.close(directory)
        except WorkspaceFault as fault:
            if fault.kind == "missing" and not place.path:
                # A workspace nobody has written to yet.
                return DirectoryPage("", (), 0)
            raise
        return DirectoryPage(place.path, entries, total, stopped)


def _first_names(directory: int, wanted: int, stop: threading.Event) -> tuple[list[str], int, bool]:
    """The first names in order, their number in all, and whether time ran out."""
    ends = time.monotonic() + SECONDS
    names: list[str] = []
    total, stopped = 0, False
    with os.scandir(directory) as found:
        for entry in found:
            names.append(entry.name)
            total += 1
            if len(names) >= wanted + _SLACK:
                names.sort()
                del names[wanted:]
                if stop.is_set():
                    raise Stopped
                if time.monotonic() > ends:
                    stopped = True
                    break
    names.sort()
    return names[:wanted], total, stopped


def _entry(directory: int, name: str) -> Entry:
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except OSError:
        return Entry(name, "special")
    if stat.S_ISDIR(status.st_mode):
        return Entry(name, "directory")
    if stat.S_ISREG(status.st_mode):
        return Entry(name, "file", status.st_size)
    return Entry(name, "link" if stat.S_ISLNK(status.st_mode) else "special")
