"""Putting one entry of an archive on disk, whoever made the archive.

`tarfile` has filters for this from Python 3.11.4 on; Debian 12 has 3.11.2.
"""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path, PurePosixPath


class HostileEntry(Exception):
    """The entry is none that a backup of ours holds; the message is a short reason."""


def put(archive: tarfile.TarFile, entry: tarfile.TarInfo, folder: Path) -> None:
    """Make the file, folder or link of an entry below `folder`, with its mode and time.

    Links that point out of the archive's top folder are left out: what they meant is elsewhere.

    Raises:
        HostileEntry: It would land outside, is there already, or is neither file, folder nor link.
    """
    name = PurePosixPath(entry.name)
    target = folder / name
    if name.is_absolute() or ".." in name.parts or not _inside(target.parent, folder):
        raise HostileEntry("outside")
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        if entry.isdir():
            target.mkdir(exist_ok=True)
            target.chmod(entry.mode & 0o777 | 0o700)
        elif entry.issym():
            # The archive's top folder becomes the home: what is beside it now will not be then.
            top = folder / name.parts[0]
            if not os.path.isabs(entry.linkname) and _inside(target.parent / entry.linkname, top):
                target.symlink_to(entry.linkname)
        elif entry.isreg():
            _write(archive, entry, target)
        else:
            raise HostileEntry("special file")
    except FileExistsError:
        raise HostileEntry("twice") from None


def _inside(path: Path, folder: Path) -> bool:
    """Whether `path` is below `folder` when every link on the way is followed."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def _write(archive: tarfile.TarFile, entry: tarfile.TarInfo, target: Path) -> None:
    packed = archive.extractfile(entry)
    if packed is None:
        raise HostileEntry("empty")
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with packed, os.fdopen(descriptor, "wb") as file:
        shutil.copyfileobj(packed, file)
        os.fchmod(file.fileno(), entry.mode & 0o777)
    os.utime(target, (entry.mtime, entry.mtime))
