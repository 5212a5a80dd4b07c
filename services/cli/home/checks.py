"""What stops a start before anything is started, one sentence each."""

from __future__ import annotations

import errno
import grp
import os
import pwd
import shutil
import socket
import tempfile
from pathlib import Path

from services.cli.texts import texts
from services.common.start import StartError

# Under this much room a start is refused and turns end (FLD-051).
MIN_FREE_BYTES = 200 * 1024 * 1024


def check_writable(folder: Path) -> None:
    """Make the folder when it is missing, and write into it to see that it can be (FLD-045).

    Raises:
        StartError: It names the folder, the two ids and the command that repairs it.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return
    except OSError as error:
        raise _not_writable(folder, error) from None


def check_disk(folder: Path) -> None:
    """Refuse a disk on which Postgres would soon stop.

    Raises:
        StartError: Less than `MIN_FREE_BYTES` are free; it names both numbers.
    """
    free = shutil.disk_usage(folder).free
    if free < MIN_FREE_BYTES:
        raise StartError(
            "error.home.disk_full",
            catalogue=texts(),
            folder=folder,
            free=free // (1024 * 1024),
            needed=MIN_FREE_BYTES // (1024 * 1024),
        )


def check_port(host: str, port: int, setting: str) -> None:
    """Refuse an address that is taken or not this machine's, before anything is started.

    Args:
        host: Name or address.
        port: 0 is always free.
        setting: The option that chooses another port.

    Raises:
        StartError: It cannot be bound.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise StartError("error.start.port_in_use", port=port, host=host, setting=setting) from None
        raise StartError(
            "error.start.cannot_listen", address=f"{host}:{port}", problem=error.strerror
        ) from None


def _not_writable(folder: Path, error: OSError) -> StartError:
    there = next((path for path in (folder, *folder.parents) if os.path.exists(path)), Path("/"))
    if error.errno == errno.EROFS:
        return StartError("error.home.read_only", catalogue=texts(), folder=folder)
    if error.errno == errno.ENOSPC:
        return StartError(
            "error.home.disk_full",
            catalogue=texts(),
            folder=folder,
            free=0,
            needed=MIN_FREE_BYTES // (1024 * 1024),
        )
    if error.errno not in {errno.EACCES, errno.EPERM}:
        return StartError(
            "error.home.unusable", catalogue=texts(), folder=folder, problem=error.strerror or str(error)
        )
    owner = there.stat()
    me = f"{os.geteuid()}:{os.getegid()}"
    return StartError(
        "error.home.not_writable",
        catalogue=texts(),
        folder=there,
        owner=f"{owner.st_uid}:{owner.st_gid}",
        owner_name=f"{_user(owner.st_uid)}:{_group(owner.st_gid)}",
        me=me,
        command=f"sudo chown -R {me} '{there}'",
    )


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
