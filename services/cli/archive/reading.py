"""Making a home from an archive."""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import psycopg

from services.cli.archive.entries import HostileEntry, put
from services.cli.archive.manifest import DATABASE, HOME, MANIFEST, MAX_MANIFEST_BYTES, Manifest
from services.cli.postgres.dumps import load
from services.cli.texts import texts
from services.common.start import StartError
from services.orchestrator.store.migrate import SchemaChange, known, migrate

# Here a restore grows; a home that holds it is not whole (see `Layout.prepare`).
STAGING = ".restoring"


@contextmanager
def opened(path: Path) -> Iterator[tuple[tarfile.TarFile, Manifest]]:
    """Open an archive and read what it says about itself.

    Raises:
        StartError: It cannot be read, is none, or was made by a later release.
    """
    try:
        with tarfile.open(path, mode="r:gz") as archive:
            first = archive.next()
            if first is None or first.name != MANIFEST or first.size > MAX_MANIFEST_BYTES:
                raise StartError("error.archive.not_one", catalogue=texts())
            file = archive.extractfile(first)
            manifest = Manifest.decode(file.read() if file is not None else b"")
            newest = known()[-1].n
            if manifest.schema > newest:
                raise StartError("error.archive.too_new", catalogue=texts(), program=manifest.program)
            yield archive, manifest
    except (tarfile.TarError, EOFError, OSError) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise StartError("error.archive.not_read", catalogue=texts(), file=path, problem=problem) from error


def check_empty(home: Path, workspaces: Path | None = None) -> None:
    """Refuse a home that holds anything but a restore that did not end, and workspaces with files.

    Raises:
        StartError: It names the folder.
    """
    if set(os.listdir(home)) - {STAGING, ".lock"}:
        raise StartError("error.archive.home_not_empty", catalogue=texts(), home=home)
    # After a killed restore they may hold a part of what is restored now.
    unfinished = (home / STAGING).exists()
    if workspaces is not None and workspaces.is_dir() and os.listdir(workspaces) and not unfinished:
        raise StartError("error.archive.home_not_empty", catalogue=texts(), home=workspaces)


def unpack(archive: tarfile.TarFile, home: Path) -> Path:
    """Unpack into the staging folder of the home; returns the path of the database's dump.

    Entries that would land outside and devices are refused; links out of the home are left out.

    Raises:
        StartError: An entry is not one of ours, or the dump is missing.
    """
    staging = home / STAGING
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(mode=0o700, parents=True)
    for entry in archive:
        if entry.name == MANIFEST:
            continue
        top = PurePosixPath(entry.name).parts[:1]
        if entry.name != DATABASE and top != (HOME,):
            raise StartError("error.archive.not_one", catalogue=texts())
        try:
            put(archive, entry, staging)
        except HostileEntry as error:
            raise StartError(
                "error.archive.not_read", catalogue=texts(), file=entry.name, problem=error
            ) from None
    dumped = staging / DATABASE
    if not dumped.is_file():
        raise StartError("error.archive.not_one", catalogue=texts())
    return dumped


def fill(owner_url: str, dumped: Path) -> SchemaChange:
    """Fill an empty database from the dump and bring it up to this release's schema.

    Raises:
        StartError: The database already holds something, or one of the steps failed.
    """
    with psycopg.connect(owner_url) as connection:
        if connection.execute("select to_regclass('public.schema_version')").fetchone() != (None,):
            raise StartError("error.archive.database_not_empty", catalogue=texts())
    load(owner_url, dumped)
    return migrate(owner_url)


def finish(home: Path, workspaces: Path | None = None) -> None:
    """Move what was unpacked into its place; the last thing to go is the mark of the staging.

    Args:
        home: The home it was unpacked into.
        workspaces: Where the agents' workspaces go when they are not kept in the home.
    """
    staged = home / STAGING / HOME
    if workspaces is not None:
        _move(staged / "workspace", workspaces / "default")
        for folder in sorted(staged.glob("agents/*/workspace")):
            _move(folder, workspaces / folder.parent.name)
    if staged.is_dir():
        for path in sorted(staged.iterdir()):
            path.rename(home / path.name)
    shutil.rmtree(home / STAGING)


def _move(folder: Path, place: Path) -> None:
    """Move the content of a folder, also onto another file system, into one that may be there."""
    if not folder.is_dir():
        return
    place.mkdir(parents=True, exist_ok=True)
    for path in sorted(folder.iterdir()):
        shutil.move(path, place / path.name)
    folder.rmdir()
