"""Dumps of the database: before each change of the schema, and into backups."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from services.cli.postgres.cluster import failed, run_program
from services.orchestrator.store.migrate import SchemaChange

# FLD-046.
KEPT = 3
_HOURS_MAX = 6


def dump_before(change: SchemaChange, owner_url: str, folder: Path) -> None:
    """Dump the database into `folder` before its schema changes, and keep the newest three.

    Raises:
        StartError: pg_dump failed; the file it began is gone.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    dump(owner_url, folder / f"{stamp}-schema-{change.before:04}.dump")
    for old in sorted(folder.glob("*-schema-*.dump"))[:-KEPT]:
        old.unlink()


def dump(owner_url: str, path: Path) -> None:
    """Write the whole database to `path` in Postgres's own archive format, 0600.

    Raises:
        StartError: pg_dump failed; the file it began is gone.
    """
    fresh = path.with_name(f".{path.name}.new")
    try:
        os.close(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
        done = run_program(
            "pg_dump",
            ["--format=custom", "--no-owner", f"--file={fresh}"],
            env=connection_variables(owner_url),
            timeout=_HOURS_MAX * 3600,
        )
        if done.returncode != 0:
            raise failed("pg_dump", done)
        os.replace(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)


def load(owner_url: str, path: Path) -> None:
    """Fill an empty database from a dump, wholly or not at all.

    Raises:
        StartError: pg_restore failed; the database is still empty.
    """
    done = run_program(
        "pg_restore",
        [
            "--no-owner",
            "--no-comments",
            "--exit-on-error",
            "--single-transaction",
            f"--dbname={connection_variables(owner_url)['PGDATABASE']}",
            str(path),
        ],
        env=connection_variables(owner_url),
        timeout=_HOURS_MAX * 3600,
    )
    if done.returncode != 0:
        raise failed("pg_restore", done)


def connection_variables(url: str) -> dict[str, str]:
    """A connection string as variables of libpq: what stands on a command line is seen by all."""
    names = {
        "host": "PGHOST",
        "port": "PGPORT",
        "user": "PGUSER",
        "password": "PGPASSWORD",
        "passfile": "PGPASSFILE",
        "dbname": "PGDATABASE",
        "sslmode": "PGSSLMODE",
        "sslrootcert": "PGSSLROOTCERT",
    }
    parts = conninfo_to_dict(url)
    return {names[name]: str(value) for name, value in parts.items() if name in names}
