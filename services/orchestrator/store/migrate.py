"""Bringing the schema up to date: numbered files, once each, under a lock (FLD-046).

A file ``NNNN_name.sql`` and the mark that it was applied are one transaction, so a process killed at
any statement leaves the schema before it or after it. The lock belongs to the connection and is gone
with it; nothing has to be broken open after a crash.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psycopg
import structlog
from psycopg import sql

from services.common.start import StartError

log = structlog.get_logger(__name__)

MIGRATIONS = Path(__file__).parent / "migrations"
# Any number that no other use of advisory locks in this database takes.
_LOCK = 0x6372_6577_0001
_FILE = re.compile(r"(\d{4})_[a-z0-9_]+\.sql")
# A killed migration's connection, and its lock, are noticed to be dead within this time.
_SESSION = "-c client_connection_check_interval=1s -c timezone=UTC"

# Longer than any trail is old.
_ALL_MONTHS = 12_000
# Partitions need the audit trail for themselves for a moment; a running crew is not made to wait longer.
_LOCK_TIMEOUT = "5s"

# What each file may rely on. Everything in schema public is the services' to use; in schema audit a
# table is closed to them until its migration grants what it means to.
_GROUND = """
create table if not exists schema_version (
    n integer primary key,
    file text not null,
    sha256 text not null,
    program text not null,
    applied_at timestamptz not null default now()
);
create schema if not exists audit;
grant usage on schema public to {app};
alter default privileges in schema public grant select, insert, update, delete on tables to {app};
alter default privileges in schema public grant usage, select, update on sequences to {app};
revoke insert, update, delete, truncate on schema_version from {app};
grant select on schema_version to {app};
"""


@dataclass(frozen=True, slots=True)
class Migration:
    """One file of the folder of migrations."""

    n: int
    file: str
    text: str

    @property
    def sha256(self) -> str:
        """Of the text; an applied file never changes."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """From which version of the schema to which; 0 is an empty database."""

    before: int
    after: int


@cache
def known(folder: Path = MIGRATIONS) -> tuple[Migration, ...]:
    """The migrations this program brings, in order.

    Raises:
        ValueError: Two files have one number, or a name is not ``NNNN_name.sql``.
    """
    found: list[Migration] = []
    for path in sorted(folder.glob("*.sql")):
        match = _FILE.fullmatch(path.name)
        if match is None or (found and found[-1].n == int(match[1])):
            raise ValueError(f"{path.name} is not a migration, or its number is taken")
        found.append(Migration(int(match[1]), path.name, path.read_text("utf-8")))
    return tuple(found)


def migrate(
    owner_url: str,
    *,
    app_role: str = "crew_app",
    before_change: Callable[[SchemaChange], None] | None = None,
    folder: Path = MIGRATIONS,
    audit_months: int | None = None,
) -> SchemaChange:
    """Apply what is missing; a second caller waits for the first and finds nothing to do.

    At the end the months of the audit trail get their partitions, and old ones are dropped if asked.

    Args:
        owner_url: Connection string of the role that owns the schema.
        app_role: The role of the services, which gets its rights here.
        before_change: Called under the lock before a database that holds something is changed: the
            place of the dump. When it raises, nothing is changed.
        folder: Where the files are.
        audit_months: Full months of the audit trail to keep, at least 1; None keeps all of it.

    Raises:
        StartError: The schema is newer than this program, an applied file was changed, or a file
            failed; the schema is as it was before that file.
    """
    files = known(folder)
    with psycopg.connect(owner_url, autocommit=True, options=_SESSION, connect_timeout=10) as connection:
        connection.execute("select pg_advisory_lock(%s)", (_LOCK,))
        with connection.transaction():
            connection.execute(sql.SQL(_GROUND).format(app=sql.Identifier(app_role)))
        applied = _applied(connection)
        current = max(applied, default=0)
        _check(applied, files)
        missing = [file for file in files if file.n not in applied]
        change = SchemaChange(current, missing[-1].n if missing else current)
        if missing and current and before_change is not None:
            before_change(change)
        for file in missing:
            _apply(connection, file)
        _keep_audit_months(connection, audit_months)
    return change


def schema_is_current(connection: psycopg.Connection[Any], folder: Path = MIGRATIONS) -> bool:
    """Whether every migration of this program is applied; for services that wait for it.

    Raises:
        StartError: The schema is newer than this program, or an applied file was changed.
    """
    if connection.execute("select to_regclass('public.schema_version')").fetchone() == (None,):
        return False
    applied = _applied(connection)
    files = known(folder)
    _check(applied, files)
    return all(file.n in applied for file in files)


def _keep_audit_months(connection: psycopg.Connection[Any], months: int | None) -> None:
    """One partition a month; rows that find none go to the default one and are moved at the next start."""
    if connection.execute("select to_regproc('audit.keep_months')").fetchone() == (None,):
        return
    try:
        with connection.transaction():
            connection.execute("select set_config('lock_timeout', %s, true)", (_LOCK_TIMEOUT,))
            connection.execute("select audit.keep_months(%s)", (_ALL_MONTHS if months is None else months,))
    except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
        log.warning("audit_months_not_kept", why="the audit trail is in use; the next start does it")


def _applied(connection: psycopg.Connection[Any]) -> dict[int, tuple[str, str]]:
    rows = connection.execute("select n, sha256, program from schema_version").fetchall()
    return {n: (sha256, program) for n, sha256, program in rows}


def _check(applied: dict[int, tuple[str, str]], files: tuple[Migration, ...]) -> None:
    newest = files[-1].n if files else 0
    current = max(applied, default=0)
    if current > newest:
        raise StartError(
            "error.start.schema_too_new",
            schema=current,
            made_by=applied[current][1],
            newest=newest,
            program=version("my-agent-crew"),
        )
    for file in files:
        if file.n in applied and applied[file.n][0] != file.sha256:
            raise StartError("error.start.migration_changed", file=file.file)


def _apply(connection: psycopg.Connection[Any], file: Migration) -> None:
    try:
        with connection.transaction():
            # Without parameters a whole file goes as one message.
            connection.execute(file.text.encode())
            connection.execute(
                "insert into schema_version (n, file, sha256, program) values (%s, %s, %s, %s)",
                (file.n, file.file, file.sha256, version("my-agent-crew")),
            )
    except psycopg.Error as error:
        problem = error.diag.message_primary or type(error).__name__
        raise StartError("error.start.migration_failed", file=file.file, problem=problem) from error
