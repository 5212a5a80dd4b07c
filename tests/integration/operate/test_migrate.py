"""Migrations: once, whole or not at all, and never backwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psycopg
import pytest

from services.common.start import StartError
from services.orchestrator.store.migrate import SchemaChange, known, migrate, schema_is_current
from tests.fixtures.postgres import ScratchDatabase

SLOW = "create table half (n integer); select pg_sleep(600); create table other (n integer);"


def write(folder: Path, *texts: str) -> Path:
    folder.mkdir(exist_ok=True)
    known.cache_clear()
    for n, text in enumerate(texts, start=1):
        (folder / f"{n:04}_step.sql").write_text(text)
    return folder


def tables(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        rows = connection.execute("select tablename from pg_tables where schemaname = 'public'").fetchall()
    return {name for (name,) in rows} - {"schema_version"}


def test_the_shipped_migrations_apply_and_are_found_applied(empty_database: ScratchDatabase) -> None:
    first = migrate(empty_database.owner_url)
    second = migrate(empty_database.owner_url)
    assert first.before == 0
    assert first.after == second.before == second.after == known()[-1].n
    with psycopg.connect(empty_database.url) as connection:
        assert schema_is_current(connection)


@pytest.mark.spec("FLD-046")
def test_a_file_that_fails_leaves_what_was_there_before(
    empty_database: ScratchDatabase, tmp_path: Path
) -> None:
    folder = write(tmp_path / "m", "create table a (n integer);", "create table b (n integer); select 1/0;")
    with pytest.raises(StartError, match=r"0002_step\.sql failed: division by zero"):
        migrate(empty_database.owner_url, folder=folder)
    assert tables(empty_database.owner_url) == {"a"}
    write(folder, "create table a (n integer);", "create table b (n integer);")
    assert migrate(empty_database.owner_url, folder=folder) == SchemaChange(1, 2)


@pytest.mark.spec("FLD-046")
def test_killed_in_the_middle_leaves_the_old_schema_and_no_lock(
    empty_database: ScratchDatabase, tmp_path: Path
) -> None:
    folder = write(tmp_path / "m", "create table a (n integer);", SLOW)
    code = (
        "import sys; from pathlib import Path; from services.orchestrator.store.migrate import migrate;"
        "migrate(sys.stdin.read(), folder=Path(sys.argv[1]))"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(folder)], stdin=subprocess.PIPE, text=True)
    assert process.stdin is not None
    process.stdin.write(empty_database.owner_url)
    process.stdin.close()
    wait_for_query(empty_database, "%pg_sleep%")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert tables(empty_database.owner_url) == {"a"}
    write(folder, "create table a (n integer);", "create table b (n integer);")
    assert migrate(empty_database.owner_url, folder=folder) == SchemaChange(1, 2)
    assert tables(empty_database.owner_url) == {"a", "b"}


@pytest.mark.spec("FLD-046")
def test_two_starters_apply_each_file_once(empty_database: ScratchDatabase, tmp_path: Path) -> None:
    folder = write(
        tmp_path / "m", "create table a (n integer); select pg_sleep(0.3);", "insert into a values (1);"
    )
    changes: list[SchemaChange] = []
    starters = [
        threading.Thread(target=lambda: changes.append(migrate(empty_database.owner_url, folder=folder)))
        for _ in range(4)
    ]
    for starter in starters:
        starter.start()
    for starter in starters:
        starter.join(30)
    assert sorted((change.before, change.after) for change in changes) == [(0, 2), (2, 2), (2, 2), (2, 2)]
    with psycopg.connect(empty_database.owner_url) as connection:
        assert connection.execute("select count(*) from a").fetchone() == (1,)


@pytest.mark.spec("FLD-046")
def test_an_older_program_refuses_a_newer_schema_and_names_both(
    empty_database: ScratchDatabase, tmp_path: Path
) -> None:
    new = write(tmp_path / "new", "create table a (n integer);", "create table b (n integer);")
    old = write(tmp_path / "old", "create table a (n integer);")
    migrate(empty_database.owner_url, folder=new)
    with psycopg.connect(empty_database.owner_url, autocommit=True) as connection:
        connection.execute("update schema_version set program = '9.8.7' where n = 2")
        with pytest.raises(StartError, match=r"schema 2, made by version 9\.8\.7.* version 0\..*up to 1"):
            migrate(empty_database.owner_url, folder=old)
        with pytest.raises(StartError, match=r"9\.8\.7"):
            schema_is_current(connection, old)
    assert tables(empty_database.owner_url) == {"a", "b"}


def test_an_applied_file_that_changed_is_refused(empty_database: ScratchDatabase, tmp_path: Path) -> None:
    folder = write(tmp_path / "m", "create table a (n integer);")
    migrate(empty_database.owner_url, folder=folder)
    write(folder, "create table a (n bigint);", "create table b (n integer);")
    with pytest.raises(StartError, match=r"0001_step\.sql is not the one"):
        migrate(empty_database.owner_url, folder=folder)
    assert tables(empty_database.owner_url) == {"a"}


@pytest.mark.spec("FLD-046")
def test_the_dump_comes_before_a_change_and_only_then(
    empty_database: ScratchDatabase, tmp_path: Path
) -> None:
    asked: list[SchemaChange] = []
    folder = write(tmp_path / "m", "create table a (n integer);")
    migrate(empty_database.owner_url, folder=folder, before_change=asked.append)
    migrate(empty_database.owner_url, folder=folder, before_change=asked.append)
    assert asked == []
    write(folder, "create table a (n integer);", "create table b (n integer);")

    def full_disk(change: SchemaChange) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        migrate(empty_database.owner_url, folder=folder, before_change=full_disk)
    assert tables(empty_database.owner_url) == {"a"}
    migrate(empty_database.owner_url, folder=folder, before_change=asked.append)
    assert asked == [SchemaChange(1, 2)]


@pytest.mark.parametrize(
    "statement",
    [
        "create table mine (n integer)",
        "drop table conversations",
        "alter table conversations disable trigger all",
        "update schema_version set n = 0",
        "delete from schema_version",
        "delete from audit.calls",
        "truncate audit.calls",
        "update audit.calls set tool = ''",
        "insert into audit.calls (id, at) overriding system value values (1, now())",
        "create table audit.mine (n integer)",
    ],
)
@pytest.mark.spec("PIP-112")
def test_the_role_of_the_services_can_not_reach_past_its_rows(
    database: ScratchDatabase, statement: str
) -> None:
    with psycopg.connect(database.url) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(statement)


def test_no_other_role_enters_the_database(database: ScratchDatabase) -> None:
    with psycopg.connect(database.superuser_url, autocommit=True) as connection:
        connection.execute("create role stranger login password 'x'")
        try:
            stranger = database.url.replace("crew_app", "stranger").split(":", 2)
            with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
                psycopg.connect(f"{stranger[0]}:{stranger[1]}:x@" + database.url.split("@", 1)[1])
        finally:
            connection.execute("drop role stranger")


def wait_for_query(database: ScratchDatabase, like: str) -> None:
    deadline = time.monotonic() + 30
    with psycopg.connect(database.superuser_url, autocommit=True) as connection:
        while time.monotonic() < deadline:
            row = connection.execute(
                "select count(*) from pg_stat_activity where query like %s and pid <> pg_backend_pid()"
                " and datname = current_database() and state = 'active'",
                (like,),
            ).fetchone()
            if row is not None and row[0]:
                return
            time.sleep(0.02)
    raise AssertionError("the migration never came to its slow statement")
