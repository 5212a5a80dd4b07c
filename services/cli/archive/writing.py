"""Writing an archive while the crew may be running."""

from __future__ import annotations

import io
import os
import secrets
import stat
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import BinaryIO

import psycopg

from services.cli.archive.manifest import DATABASE, HOME, MANIFEST, Manifest, belongs, in_home
from services.cli.postgres.dumps import dump
from services.cli.texts import texts
from services.common.start import StartError


def write_archive(
    path: Path, home: Path, owner_url: str, *, workspaces: Path | None = None, with_secrets: bool
) -> Manifest:
    """Write database and home into one compressed file, 0600, whole or not at all.

    The database is as it was at one moment; files are copied one after the other after it, each as
    it is then. Links are kept as links; sockets and devices are left out.

    Args:
        path: The archive; one that exists is replaced when the new one is complete.
        home: The home; what can be made anew is left out.
        owner_url: Connection string of the schema's owner.
        workspaces: Where the agents' workspaces are when they are not in the home.
        with_secrets: Whether ``env`` and the tokens go in.

    Raises:
        StartError: The file cannot be written, or the database cannot be dumped.
    """
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            manifest = _write(file, path, home, owner_url, workspaces, with_secrets=with_secrets)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    except OSError as error:
        raise StartError(
            "error.archive.not_written", catalogue=texts(), file=path, problem=error.strerror or str(error)
        ) from error
    finally:
        fresh.unlink(missing_ok=True)
    return manifest


def _write(
    file: BinaryIO, path: Path, home: Path, owner_url: str, workspaces: Path | None, *, with_secrets: bool
) -> Manifest:
    with psycopg.connect(owner_url) as connection:
        row = connection.execute("select coalesce(max(n), 0) from schema_version").fetchone()
    manifest = Manifest(
        program=version("my-agent-crew"),
        schema=row[0] if row is not None else 0,
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        secrets=with_secrets,
    )
    with tarfile.open(fileobj=file, mode="w:gz", compresslevel=6, format=tarfile.PAX_FORMAT) as archive:
        _add_bytes(archive, MANIFEST, manifest.encode())
        # Beside the archive, where room for its size is needed anyway; /tmp may be memory.
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".crew-backup-") as folder:
            dumped = Path(folder) / DATABASE
            dump(owner_url, dumped)
            archive.add(dumped, DATABASE)
        for relative in _files(home, PurePosixPath(), lambda found: belongs(found, secrets=with_secrets)):
            # Older archives, and this one, may lie in the home.
            if not _is_archive(home / relative, path):
                _add_path(archive, home / relative, f"{HOME}/{relative}")
        if workspaces is not None:
            for relative in _files(workspaces, PurePosixPath(), lambda _: True):
                _add_path(archive, workspaces / relative, f"{HOME}/{in_home(relative)}")
    return manifest


def _files(
    root: Path, folder: PurePosixPath, wanted: Callable[[PurePosixPath], bool]
) -> Iterator[PurePosixPath]:
    """Folders before what is in them; a folder that vanished meanwhile is empty."""
    try:
        names = sorted(os.listdir(root / folder))
    except FileNotFoundError:
        return
    for name in names:
        relative = folder / name
        if wanted(relative):
            yield relative
            path = root / relative
            if path.is_dir() and not path.is_symlink():
                yield from _files(root, relative, wanted)


def _is_archive(found: Path, path: Path) -> bool:
    return found == path or (found.parent == path.parent and found.name.startswith(f".{path.name}."))


def _add_path(archive: tarfile.TarFile, path: Path, name: str) -> None:
    try:
        found = path.lstat()
        if stat.S_ISREG(found.st_mode):
            # Without NONBLOCK a file that became a pipe meanwhile would be waited on for ever.
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(descriptor, "rb") as file:
                entry = archive.gettarinfo(arcname=name, fileobj=file)
                if entry.islnk():
                    # Another name of a file that is in already; packed whole, it needs no other entry.
                    entry.type, entry.linkname = tarfile.REGTYPE, ""
                    entry.size = os.fstat(descriptor).st_size
                if entry.isreg():
                    archive.addfile(entry, _Exactly(file, entry.size))
        elif stat.S_ISDIR(found.st_mode) or stat.S_ISLNK(found.st_mode):
            archive.addfile(archive.gettarinfo(path, name))
    except FileNotFoundError:
        # It was there when its folder was listed.
        return


def _add_bytes(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    entry.mode = 0o600
    archive.addfile(entry, io.BytesIO(data))


class _Exactly(io.RawIOBase):
    """A file cut or filled with zeros to the size its entry has, since it may change meanwhile."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._left = size

    def read(self, size: int = -1) -> bytes:
        """At most `size` of the bytes that are left."""
        wanted = self._left if size < 0 else min(size, self._left)
        data = self._file.read(wanted)
        self._left -= wanted
        return data + b"\0" * (wanted - len(data))
