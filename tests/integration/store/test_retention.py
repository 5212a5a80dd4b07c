"""What ended long ago goes, what is unfinished stays, and a large rest goes in small pieces."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import psycopg
import pytest
from crew.v1 import runs_pb2

from services.orchestrator.store import conversations, retention
from services.orchestrator.store.pool import Database
from tests.fixtures.crew import names_of, running_crew, until
from tests.fixtures.postgres import ScratchDatabase


@pytest.fixture
async def store(database: ScratchDatabase) -> AsyncIterator[Database]:
    opened = Database(database.url)
    await opened.open()
    yield opened
    await opened.close()


async def make(store: Database, *, status: str, days: int | None, approval: str | None = None) -> str:
    """A conversation with a run of this status that ended so many days ago; the run's id."""
    run_id = str(uuid4())
    async with store.transaction() as connection:
        conversation = await conversations.create(
            connection, agent_id="default", channel="web", title="", autonomous=False, cost_cap_usd=0
        )
        await connection.execute(
            """
            insert into runs
                (id, conversation_id, agent_id, source, status, after_seq, started_at, finished_at)
            values (%s, %s, 'default', 'chat', %s, 0, now() - interval '400 days',
                now() - make_interval(days => %s))
            """,
            (run_id, conversation.id, status, days),
        )
        await connection.execute(
            "insert into run_steps (run_id, n, kind, body) values (%s, 0, 'model', '{}')", (run_id,)
        )
        await connection.execute(
            """
            insert into messages (conversation_id, seq, role, author, content, run_id)
            values (%s, 1, 'user', 'person', 'hello', %s)
            """,
            (conversation.id, run_id),
        )
        if approval:
            await connection.execute(
                """
                insert into approvals (id, conversation_id, agent_id, run_id, kind, tool, tool_call_id,
                    arguments, arguments_sha256, status, expires_at, decided_at)
                values (%s, %s, 'default', %s, 'tool', 't', 'c', '{}', '', %s, now(),
                    case when %s <> 'pending' then now() - interval '100 days' end)
                """,
                (str(uuid4()), conversation.id, run_id, approval, approval),
            )
    return run_id


async def left(store: Database, table: str) -> int:
    async with store.connection() as connection:
        cursor = await connection.execute(f"select count(*)::int as n from {table}")
        row = await cursor.fetchone()
    assert row is not None
    return int(row["n"])


async def runs_left(store: Database) -> set[str]:
    async with store.connection() as connection:
        cursor = await connection.execute("select id from runs")
        return {str(row["id"]) for row in await cursor.fetchall()}


@pytest.mark.spec("FLD-052")
async def test_what_ended_long_ago_goes_and_the_rest_stays(store: Database) -> None:
    for status in ("done", "halted", "error"):
        await make(store, status=status, days=91)
    await make(store, status="done", days=91, approval="approved")
    kept = {
        await make(store, status="done", days=89),
        await make(store, status="running", days=None, approval="approved"),
        await make(store, status="awaiting_approval", days=None, approval="pending"),
        # Taken up by another run while a person is still asked.
        await make(store, status="error", days=91, approval="pending"),
    }
    removed = await retention.sweep(store, days=90)
    assert (removed["runs"], removed["approvals"]) == (4, 1)
    assert await runs_left(store) == kept
    assert await left(store, "run_steps") == len(kept)
    assert await left(store, "approvals") == 3
    assert await left(store, "messages") == 8, "what was said stays"
    assert set((await retention.sweep(store, days=90)).values()) == {0}


@pytest.mark.spec("FLD-052")
async def test_credentials_that_let_nobody_in_go(store: Database, database: ScratchDatabase) -> None:
    with psycopg.connect(database.superuser_url, autocommit=True) as connection:
        for n, age in enumerate(["1 second", "-1 day"]):
            secret = bytes([n]) * 32
            connection.execute(
                "insert into sessions (id, secret_sha256, address, expires_at) "
                "values (gen_random_uuid(), %s, '', now() - %s::interval)",
                (secret, age),
            )
            connection.execute(
                "insert into setup_tokens (secret_sha256, expires_at) values (%s, now() - %s::interval)",
                (secret, age),
            )
        for n, age in enumerate(["91 days", "89 days", "-1 day", None]):
            connection.execute(
                "insert into api_tokens (id, name, secret_sha256, scopes, expires_at) "
                "values (gen_random_uuid(), %s, %s, '{}', now() - %s::interval)",
                (f"token {n}", bytes([n]) * 32, age),
            )
    removed = await retention.sweep(store, days=90)
    assert (removed["sessions"], removed["setup_tokens"], removed["api_tokens"]) == (1, 1, 1)
    assert await left(store, "sessions") == await left(store, "setup_tokens") == 1
    assert await left(store, "api_tokens") == 3


async def test_two_at_once_in_batches_remove_everything_once(store: Database) -> None:
    for _ in range(25):
        await make(store, status="done", days=91, approval="denied")
    first, second = await asyncio.gather(*(retention.sweep(store, days=90, batch=4) for _ in range(2)))
    assert first["runs"] + second["runs"] == 25
    assert await runs_left(store) == set()
    assert await left(store, "approvals") == 0


@pytest.mark.spec("FLD-052")
async def test_a_crew_removes_old_runs_at_its_start(database: ScratchDatabase) -> None:
    async with running_crew(database, config="keep_days: 3\n") as crew:
        conversation_id = await crew.open()
        old, fresh = [(await crew.send(conversation_id, text))[-1].run_id for text in ("one", "two")]
        with psycopg.connect(database.superuser_url, autocommit=True) as connection:
            connection.execute(
                "update runs set finished_at = now() - interval '4 days' where id = %s", (old,)
            )
        await crew.end("orchestrator")
        await crew.start("orchestrator")

        async def removed() -> bool:
            found = await crew.runs.List(runs_pb2.RunsRequest(conversation_id=conversation_id))
            return [run.id for run in found.runs] == [fresh]

        await until(removed)
        assert len((await crew.get(conversation_id)).messages) == 4
        assert names_of(await crew.send(conversation_id, "three"))[-1] == "done"
