"""One Postgres cluster: making it, the command that runs it, its roles and its addresses."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import psycopg
from psycopg import sql

from services.cli.postgres import launcher
from services.cli.postgres.binaries import MAJOR, program
from services.cli.texts import texts
from services.common.start import StartError

Role = Literal["postgres", "crew_owner", "crew_app"]
DATABASE = "crew"
_INITDB_SECONDS = 120
# The default of 128 MB of shared buffers and 100 connections is more than a household needs.
_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "60",
    "shared_buffers": "32MB",
    # No worker processes for reading ahead or for replication: each costs memory and serves nobody.
    "io_method": "sync",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_logical_replication_workers": "0",
    "password_encryption": "scram-sha-256",
    "log_min_messages": "warning",
    "log_line_prefix": "",
    "logging_collector": "off",
}


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster on this machine, reached through a socket in `run` alone.

    Attributes:
        data: Folder of the data; made by `initialise`.
        run: Folder of the socket, 0700.
        secrets_dir: Folder of the roles' passwords, 0700.
    """

    data: Path
    run: Path
    secrets_dir: Path

    @property
    def exists(self) -> bool:
        """Whether there are data, of whatever version."""
        return (self.data / "PG_VERSION").exists()

    def check_version(self) -> None:
        """Refuse data of another major version, touching nothing (FLD-048).

        Raises:
            StartError: It names both versions and the commands that carry the data over.
        """
        try:
            found = (self.data / "PG_VERSION").read_text("ascii").strip()
        except FileNotFoundError:
            return
        if found != str(MAJOR):
            raise StartError(
                "error.postgres.wrong_major", catalogue=texts(), folder=self.data, found=found, major=MAJOR
            )

    def initialise(self) -> None:
        """Make the cluster when there is none. A start killed half way is made anew.

        Raises:
            StartError: initdb failed, with its own words.
        """
        self.check_version()
        if self.exists:
            return
        self.secrets_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.data.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = self.data.with_name(f".{self.data.name}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        with tempfile.NamedTemporaryFile("w", dir=self.secrets_dir) as file:
            file.write(self.password("postgres"))
            file.flush()
            done = run_program(
                "initdb",
                [
                    f"--pgdata={fresh}",
                    "--username=postgres",
                    f"--pwfile={file.name}",
                    "--auth-local=scram-sha-256",
                    "--auth-host=scram-sha-256",
                    "--encoding=UTF8",
                    "--locale-provider=builtin",
                    "--builtin-locale=C.UTF-8",
                    "--locale=C",
                    "--no-instructions",
                ],
                timeout=_INITDB_SECONDS,
            )
        if done.returncode != 0:
            shutil.rmtree(fresh, ignore_errors=True)
            raise failed("initdb", done)
        # A name that exists means a whole cluster.
        os.rename(fresh, self.data)

    def server_command(self, parent: int, extra: Mapping[str, str] | None = None) -> list[str]:
        """What runs the server in the foreground, ending with the process `parent` (0: none)."""
        settings = {**_SETTINGS, "unix_socket_directories": str(self.run), **(extra or {})}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return launched(parent, [str(program("postgres")), "-D", str(self.data), *options])

    def provision(self) -> None:
        """Make the roles and the database that are missing; to be called when the server answers.

        ``crew_owner`` owns the schema and migrates; ``crew_app`` works with the rows.
        """
        with psycopg.connect(self.url("postgres", "postgres"), autocommit=True) as connection:
            for role in ("crew_owner", "crew_app"):
                self._provision_role(connection, role)
            there = connection.execute("select 1 from pg_database where datname = %s", (DATABASE,)).fetchone()
            if there is None:
                self.create_database(connection, DATABASE)

    def create_database(
        self, connection: psycopg.Connection[tuple[object, ...]], name: str, *, template: str = "template0"
    ) -> None:
        """Make a database, empty or a copy of another, that the two roles alone may enter."""
        database = sql.Identifier(name)
        connection.execute(
            sql.SQL("create database {} owner crew_owner template {}").format(
                database, sql.Identifier(template)
            )
        )
        connection.execute(sql.SQL("revoke connect, temporary on database {} from public").format(database))
        connection.execute(sql.SQL("grant connect on database {} to crew_app").format(database))

    def url(self, role: Role, database: str = DATABASE) -> str:
        """The connection string of a role. It holds the password: never log it, never pass it on a
        command line."""
        return f"postgresql://{role}:{self.password(role)}@/{database}?host={quote(str(self.run), safe='')}"

    def password(self, role: Role) -> str:
        """The role's password, made when first asked for."""
        path = self.secrets_dir / f"{role}.password"
        try:
            return path.read_text("ascii").strip()
        except FileNotFoundError:
            self.secrets_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(32) + "\n")
        try:
            # Two starters: the first one's password stays.
            os.link(fresh, path)
        except FileExistsError:
            pass
        finally:
            fresh.unlink()
        return path.read_text("ascii").strip()

    def _provision_role(self, connection: psycopg.Connection[tuple[object, ...]], role: Role) -> None:
        known = connection.execute("select 1 from pg_roles where rolname = %s", (role,)).fetchone()
        verb = sql.SQL("alter role {} login password {}" if known else "create role {} login password {}")
        # The server logs failed statements: what it is sent is the digest, not the password.
        digest = connection.pgconn.encrypt_password(
            self.password(role).encode(), role.encode(), b"scram-sha-256"
        ).decode()
        connection.execute(verb.format(sql.Identifier(role), sql.Literal(digest)))


def launched(parent: int, command: Sequence[str]) -> list[str]:
    """The command line that runs `command` through the launcher."""
    return [sys.executable, "-I", "-S", launcher.__file__, str(parent), *command]


def run_program(
    name: str, arguments: Sequence[str], *, timeout: float, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program of Postgres to its end with an environment of its own.

    Args:
        name: ``initdb``, ``pg_dump`` or another one.
        arguments: Without any secret: passwords go into `env`.
        timeout: Seconds after which it is killed.
        env: Added to a bare environment.
    """
    return subprocess.run(
        launched(os.getpid(), [str(program(name)), *arguments]),
        env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC", **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def failed(name: str, done: subprocess.CompletedProcess[str]) -> StartError:
    """The refusal that quotes what a program of Postgres said."""
    if done.returncode == launcher.CANNOT_UNSHARE:
        return StartError("error.postgres.root", catalogue=texts())
    lines = [line for line in done.stderr.strip().splitlines() if line.strip()]
    problem = next((line for line in lines if "error" in line.lower()), lines[0] if lines else "?")
    return StartError(
        "error.postgres.program_failed",
        catalogue=texts(),
        program=name,
        code=done.returncode,
        problem=problem[:300],
    )
