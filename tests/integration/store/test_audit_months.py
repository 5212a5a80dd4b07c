"""The audit trail by month: each has its partition, old ones are dropped, the services can do neither."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from services.orchestrator.store.migrate import migrate
from tests.fixtures.postgres import ScratchDatabase


def months(connection: psycopg.Connection[Any], table: str) -> list[str]:
    rows = connection.execute(
        "select inhrelid::regclass::text from pg_inherits where inhparent = to_regclass(%s) order by 1",
        (f"audit.{table}",),
    ).fetchall()
    return [name for (name,) in rows]


def record(connection: psycopg.Connection[Any], age: str) -> None:
    connection.execute(
        """
        insert into audit.calls (at, event, agent_id, conversation_id, run_id, call_id, tool,
            arguments_sha256, arguments_short, allowed_by)
        values (now() - %s::interval, 'allowed', 'a', gen_random_uuid(), gen_random_uuid(), 'c', 't', '', '',
            'free')
        """,
        (age,),
    )


def expected(connection: psycopg.Connection[Any], table: str, first: int, last: int) -> list[str]:
    rows = connection.execute(
        "select to_char(date_trunc('month', now()) + make_interval(months => n), 'YYYY_MM') "
        "from generate_series(%s::int, %s::int) n order by 1",
        (first, last),
    ).fetchall()
    return [*(f"audit.{table}_{month}" for (month,) in rows), f"audit.{table}_rest"]


@pytest.mark.spec("FLD-052")
def test_this_and_the_next_months_have_partitions_and_rows_go_there(database: ScratchDatabase) -> None:
    with psycopg.connect(database.owner_url, autocommit=True) as connection:
        for table in ("calls", "access"):
            assert months(connection, table) == expected(connection, table, 0, 3)
        record(connection, "0")
        assert connection.execute("select count(*) from audit.calls_rest").fetchone() == (0,)


@pytest.mark.spec("FLD-052")
def test_rows_that_found_no_month_get_one_and_old_months_are_dropped(database: ScratchDatabase) -> None:
    with psycopg.connect(database.owner_url, autocommit=True) as connection:
        for age in ("0", "2 months", "2 months", "40 months"):
            record(connection, age)
        kept = connection.execute(
            "select id, at from audit.calls where at > now() - interval '3 months' order by id"
        ).fetchall()
    migrate(database.owner_url, audit_months=24)
    with psycopg.connect(database.owner_url, autocommit=True) as connection:
        assert connection.execute("select id, at from audit.calls order by id").fetchall() == kept
        assert connection.execute("select count(*) from audit.calls_rest").fetchone() == (0,)
        assert len(months(connection, "calls")) == 6
    migrate(database.owner_url, audit_months=1)
    with psycopg.connect(database.owner_url, autocommit=True) as connection:
        assert connection.execute("select count(*) from audit.calls").fetchone() == (1,)
        assert months(connection, "calls") == expected(connection, "calls", 0, 3)


@pytest.mark.spec("FLD-052", "PIP-112")
def test_the_services_add_to_a_month_and_change_none(database: ScratchDatabase) -> None:
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute(
            "insert into audit.calls (event, agent_id, conversation_id, run_id, call_id, tool, "
            "arguments_sha256, arguments_short, allowed_by) "
            "values ('allowed', 'a', gen_random_uuid(), gen_random_uuid(), 'c', 't', '', '', 'free')"
        )
        assert connection.execute("select count(*) from audit.calls").fetchone() == (1,)
        month = months(connection, "calls")[0]
        for statement in (
            "select audit.keep_months(1)",
            "select audit.keep_months(0)",
            f"update {month} set tool = 'x'",
            f"delete from {month}",
            f"truncate {month}",
            f"drop table {month}",
            f"alter table audit.calls detach partition {month}",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)


def test_a_trail_in_use_does_not_keep_the_crew_from_starting(
    database: ScratchDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.orchestrator.store.migrate._LOCK_TIMEOUT", "100ms")
    with psycopg.connect(database.owner_url) as busy:
        record(busy, "40 months")
        migrate(database.owner_url, audit_months=24)
        busy.commit()
    migrate(database.owner_url, audit_months=24)
    with psycopg.connect(database.owner_url) as connection:
        assert connection.execute("select count(*) from audit.calls").fetchone() == (0,)
