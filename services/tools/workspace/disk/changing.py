"""Replacing one file of a workspace on disk, whole or not at all."""

from __future__ import annotations

import hashlib
import os
import posixpath
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from services.common.toolhost.contract import WorkspaceGrant
from services.tools.workspace.disk.beneath import open_beneath
from services.tools.workspace.disk.path_queue import PathQueue
from services.tools.workspace.disk.places import Place, as_faults, locate, opened_root
from services.tools.workspace.disk.reading import CHUNK_BYTES, open_regular
from services.tools.workspace.disk.stoppable import stoppable
from services.tools.workspace.faults import WorkspaceFault
from services.tools.workspace.interfaces import ABSENT, Target, Written
from services.tools.workspace.paths import alike

# Larger files are replaced without a look at what they hold.
LOOKED_AT_BYTES = 8 * 1024**2
# Told apart by size and time instead of by what is in them.
HASHED_BYTES = 256 * 1024**2
_ATTEMPTS = 3
_FOLDER = os.O_RDONLY | os.O_DIRECTORY

Make = Callable[[Target], bytes | None]


class DiskChanging:
    """Changes files; implements `FileChanging`.

    Args:
        queue: Shared by everything in this process that changes workspace files.
    """

    def __init__(self, queue: PathQueue) -> None:
        self._queue = queue

    async def look(self, grant: WorkspaceGrant, path: str) -> Target:
        """The file at `path` as it is now."""
        return await stoppable(lambda _: _look(_place(grant, path))[0])

    async def change(self, grant: WorkspaceGrant, path: str, make: Make) -> Written | None:
        """Replace the file at `path` by what `make` gives for it."""
        place = await stoppable(lambda _: _place(grant, path))
        # Judged again when its turn has come: what waits here may wait long.
        return await self._queue.run(
            alike(place.absolute), lambda: _change(_unmoved(grant, path, place), grant.umask, make)
        )


def _place(grant: WorkspaceGrant, path: str) -> Place:
    place = locate(grant, path, writing=True)
    if not place.path or path.endswith("/"):
        raise WorkspaceFault("is_directory", path)
    return place


def _unmoved(grant: WorkspaceGrant, path: str, expected: Place) -> Place:
    place = _place(grant, path)
    if place != expected:
        raise WorkspaceFault("changed_meanwhile", path)
    return place


def _look(place: Place) -> tuple[Target, os.stat_result | None]:
    try:
        with opened_root(place) as root:
            descriptor, status = open_regular(root, place.path, place.shown)
            with open(descriptor, "rb", buffering=0) as file:
                return _target(place.path, file.fileno(), status), status
    except WorkspaceFault as fault:
        if fault.kind != "missing":
            raise
    return Target(place.path, ABSENT), None


def _target(path: str, descriptor: int, status: os.stat_result) -> Target:
    if status.st_size > HASHED_BYTES:
        return Target(path, f"large:{status.st_size}:{status.st_mtime_ns}")
    hashed, kept = hashlib.sha256(), bytearray()
    while chunk := os.read(descriptor, CHUNK_BYTES):
        hashed.update(chunk)
        if len(kept) <= LOOKED_AT_BYTES:
            kept += chunk
    content = bytes(kept) if len(kept) <= LOOKED_AT_BYTES else None
    return Target(path, hashed.hexdigest(), content)


def _change(place: Place, umask: int, make: Make) -> Written | None:
    for _ in range(_ATTEMPTS):
        before, status = _look(place)
        if status is not None and not status.st_mode & 0o222:
            raise WorkspaceFault("read_only", place.shown)
        content = make(before)
        if content is None:
            return None
        if _replace(place, umask, status, content):
            return Written(before, content)
    raise WorkspaceFault("changed_meanwhile", place.shown)


def _replace(place: Place, umask: int, status: os.stat_result | None, content: bytes) -> bool:
    """Put `content` in place of what `status` describes; False if that is not there any more."""
    os.makedirs(place.root, exist_ok=True)
    with opened_root(place) as root, _folder(root, place.parent, umask) as folder:
        # Its name is known beforehand, so that one left by a killed process is found and removed
        # by the next change of the same file instead of lying there for good.
        fresh = f".crew-{hashlib.sha256(place.name.encode(errors='surrogateescape')).hexdigest()[:16]}.part"
        with suppress(FileNotFoundError):
            os.unlink(fresh, dir_fd=folder)
        descriptor = os.open(
            fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder
        )
        try:
            with open(descriptor, "wb", buffering=0) as file:
                _write_all(file.fileno(), content)
                _dress(file.fileno(), status, os.fstat(folder), umask)
                os.fsync(file.fileno())
            if not _still(folder, place.name, status):
                return False
            os.replace(fresh, place.name, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(fresh, dir_fd=folder)
        os.fsync(folder)
    return True


def _write_all(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view[: 16 * CHUNK_BYTES]) :]


def _dress(descriptor: int, before: os.stat_result | None, folder: os.stat_result, umask: int) -> None:
    """Give a new file owner and group of its folder, a replaced one its own (FLD-054, TLS-225)."""
    owner = before or folder
    _own(descriptor, owner.st_uid, owner.st_gid)
    # Never set-user-id: what is in the file has just changed.
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode) & 0o777 if before else 0o666 & ~umask)


def _own(descriptor: int, user: int, group: int) -> None:
    now = os.fstat(descriptor)
    if (now.st_uid, now.st_gid) == (user, group):
        return
    try:
        os.fchown(descriptor, user, group)
    except PermissionError:
        # Giving a file away is for root alone; the group may be one of ours.
        with suppress(PermissionError):
            os.fchown(descriptor, -1, group)


def _still(folder: int, name: str, status: os.stat_result | None) -> bool:
    try:
        now = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return status is None
    return status is not None and (now.st_ino, now.st_dev, now.st_size, now.st_mtime_ns, now.st_mode) == (
        status.st_ino,
        status.st_dev,
        status.st_size,
        status.st_mtime_ns,
        status.st_mode,
    )


@contextmanager
def _folder(root: int, path: str, umask: int) -> Iterator[int]:
    """The folder at `path`, made with its missing parents."""
    with as_faults(path):
        folder = _made(root, path, umask)
    try:
        yield folder
    finally:
        os.close(folder)


def _made(root: int, path: str, umask: int) -> int:
    try:
        return open_beneath(root, path, _FOLDER)
    except FileNotFoundError:
        parent = _made(root, posixpath.dirname(path), umask)
    try:
        name = posixpath.basename(path)
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=parent)
        descriptor = os.open(name, _FOLDER | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        above = os.fstat(parent)
        _own(descriptor, above.st_uid, above.st_gid)
        os.fchmod(descriptor, 0o2777 & ~umask)
        return descriptor
    finally:
        os.close(parent)
