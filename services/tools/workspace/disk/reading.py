"""Reading one file of a workspace on disk."""

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
from services.tools.workspace.interfaces import ByteSink, FileIdentity

CHUNK_BYTES = 1024**2
SECONDS = 30.0
_PATH_ONLY = getattr(os, "O_PATH", None)


class DiskReading:
    """Hands over the bytes of files; implements `FileReading`."""

    async def read(self, grant: WorkspaceGrant, path: str, sink: ByteSink) -> FileIdentity:
        """Hand the bytes of the file at `path` to `sink` for at most `SECONDS`."""
        return await stoppable(lambda stop: self._read(grant, path, sink, stop))

    def _read(self, grant: WorkspaceGrant, path: str, sink: ByteSink, stop: threading.Event) -> FileIdentity:
        place = locate(grant, path)
        ends = time.monotonic() + SECONDS
        with opened_root(place) as root:
            descriptor, status = open_regular(root, place.path, path)
            with open(descriptor, "rb", buffering=0) as file:
                while chunk := file.read(CHUNK_BYTES):
                    if stop.is_set():
                        raise Stopped
                    if not sink.feed(chunk) or time.monotonic() > ends:
                        return FileIdentity(place.path, status.st_size, whole=False)
        return FileIdentity(place.path, status.st_size, whole=True)


def open_regular(root: int, path: str, shown: str) -> tuple[int, os.stat_result]:
    """Open a regular file beneath `root` for reading; anything else is looked at and not opened.

    Opening a FIFO would wait for its other end, and opening a device may act on it (TLS-200).

    Raises:
        WorkspaceFault: ``is_directory`` or ``special``.
        OSError: It cannot be opened.
    """
    if _PATH_ONLY is None:
        descriptor = open_beneath(root, path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            return descriptor, _checked(descriptor, shown)
        except BaseException:
            os.close(descriptor)
            raise
    handle = open_beneath(root, path, _PATH_ONLY)
    try:
        status = _checked(handle, shown)
        # The same object again, not the name: nothing can be swapped in between.
        return os.open(f"/proc/self/fd/{handle}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), status
    finally:
        os.close(handle)


def _checked(descriptor: int, shown: str) -> os.stat_result:
    status = os.fstat(descriptor)
    if stat.S_ISDIR(status.st_mode):
        raise WorkspaceFault("is_directory", shown)
    if not stat.S_ISREG(status.st_mode):
        raise WorkspaceFault("special", shown)
    return status
