"""The dumps made before the schema changes."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from services.cli.postgres.dumps import connection_variables, dump_before, load
from services.common.start import StartError
from services.orchestrator.store.migrate import SchemaChange
from tests.fixtures.postgres import ScratchDatabase


@pytest.mark.spec("FLD-046")
def test_the_newest_three_are_kept_and_can_be_loaded(
    database: ScratchDatabase, empty_database: ScratchDatabase, tmp_path: Path
) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    for day in (1, 2, 3, 4):
        (folder / f"2020010{day}-000000-schema-0001.dump").write_text("old")
    (folder / "mine.dump").write_text("not one of these")
    dump_before(SchemaChange(2, 3), database.owner_url, folder)
    names = sorted(path.name for path in folder.iterdir())
    assert names[:2] == ["20200103-000000-schema-0001.dump", "20200104-000000-schema-0001.dump"]
    assert names[2].endswith("-schema-0002.dump")
    assert names[3:] == ["mine.dump"]
    assert (folder / names[2]).stat().st_mode & 0o777 == 0o600
    load(empty_database.owner_url, folder / names[2])
    with psycopg.connect(empty_database.url) as connection:
        assert connection.execute("select count(*) from conversations").fetchone() == (0,)


def test_a_dump_that_fails_says_why_and_leaves_no_file(database: ScratchDatabase, tmp_path: Path) -> None:
    wrong = database.owner_url.replace(database.name, "no_such_database")
    with pytest.raises(StartError, match=r"pg_dump ended with code 1.*no_such_database"):
        dump_before(SchemaChange(1, 2), wrong, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_no_dump_loads_nothing(empty_database: ScratchDatabase, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("hello")
    with pytest.raises(StartError, match="pg_restore"):
        load(empty_database.owner_url, tmp_path / "x")


def test_a_connection_string_becomes_variables() -> None:
    assert connection_variables("postgresql://u%40x:p%2Fw@h:5433/d?passfile=/s/f&sslmode=require") == {
        "PGUSER": "u@x",
        "PGPASSWORD": "p/w",
        "PGHOST": "h",
        "PGPORT": "5433",
        "PGDATABASE": "d",
        "PGPASSFILE": "/s/f",
        "PGSSLMODE": "require",
    }
