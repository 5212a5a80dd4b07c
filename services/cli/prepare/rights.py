"""Folders that services write: given to them when fresh, checked when they hold something (FLD-045)."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from services.cli.prepare.mounts import Mount
from services.cli.texts import texts
from services.common.start import StartError

# More folders directly below a place are not looked at: the check has to end within seconds.
_MAX_FOLDERS = 10_000


@dataclass(frozen=True, slots=True)
class Identity:
    """Whom a service runs as."""

    uid: int
    gid: int

    def __str__(self) -> str:
        return f"{self.uid}:{self.gid}"


@dataclass(frozen=True, slots=True)
class Place:
    """A folder that a service writes.

    Args:
        path: Where it is mounted.
        identity: Who writes it.
        mode: Of a fresh one.
        host_path: The same folder for the person at the host, when known.
    """

    path: Path
    identity: Identity
    mode: int
    host_path: str = ""


def settle(place: Place, mount: Mount | None) -> None:
    """Give a fresh volume to its user; prove that a used one can be written.

    Nothing of what an owner put there is changed.

    Raises:
        StartError: It cannot be written; the sentence has the command that repairs it.
    """
    host = place.host_path or (mount.source if mount is not None else str(place.path))
    if mount is not None and mount.read_only:
        raise StartError("error.prepare.read_only", catalogue=texts(), path=place.path, host=host)
    fresh = mount is not None and mount.named_volume and _untouched(place.path)
    if fresh:
        os.chown(place.path, place.identity.uid, place.identity.gid)
        # Without CAP_FSETID the kernel drops the set-group-id bit for whoever is not of that group.
        group = os.getegid()
        os.setegid(place.identity.gid)
        os.chmod(place.path, place.mode)
        os.setegid(group)
    refused = _first_refused(place)
    if refused is not None:
        raise _not_writable(place, refused, host)


def _untouched(path: Path) -> bool:
    return path.stat().st_uid == 0 and next(os.scandir(path), None) is None


def _not_writable(place: Place, refused: Path, host: str) -> StartError:
    status = refused.stat()
    below = refused.relative_to(place.path)
    target = host if below == Path() else os.path.join(host, below)
    if status.st_uid == place.identity.uid:
        command = f"sudo chmod -R u+rwX {shlex.quote(target)}"
    else:
        command = f"sudo chown -R {place.identity} {shlex.quote(target)}"
    return StartError(
        "error.prepare.not_writable",
        catalogue=texts(),
        path=refused,
        host=target,
        owner=status.st_uid,
        mode=f"{status.st_mode & 0o7777:04o}",
        uid=place.identity.uid,
        gid=place.identity.gid,
        command=command,
    )


def _first_refused(place: Place) -> Path | None:
    """The first folder that the place's user cannot write, found out as that user.

    Access lists and file systems that map users decide differently from the mode bits, so the
    question is put to the kernel by a child that has become that user.
    """
    folders = [place.path, *_folders_in(place.path)]
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        answer = len(folders)
        try:
            os.close(reading)
            _become(place.identity)
            answer = next((n for n, folder in enumerate(folders) if not _writable(folder)), answer)
        except OSError as error:
            print(error, file=sys.stderr)
            answer = 0
        finally:
            os.write(writing, str(answer).encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    index = int(told or 0)
    return folders[index] if index < len(folders) else None


def _folders_in(path: Path) -> Iterator[Path]:
    with os.scandir(path) as entries:
        folders = (Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False))
        yield from islice(folders, _MAX_FOLDERS)


def _become(identity: Identity) -> None:
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(identity.gid)
        os.setuid(identity.uid)


def _writable(folder: Path) -> bool:
    probe = folder / f".crew-can-write-{os.getpid()}"
    try:
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
        probe.unlink()
    except OSError:
        return False
    return True
