"""A turn that nobody attends ends with its time, and one that does not end is taken away."""

from __future__ import annotations

import asyncio

import psycopg
import pytest
from crew.v1 import crew_pb2, turns_pb2
from psycopg.rows import dict_row

from services.orchestrator.turns.attendance import attended
from tests.fixtures.crew import Crew, names_of, running_crew, until
from tests.fixtures.model_server import ModelServer, turn
from tests.fixtures.postgres import ScratchDatabase

ASKS = 'shell_ask_patterns: ["sleep"]\n'
SLEEP = '/tool shell_run {"command": "sleep 120"}'


def rows(database: ScratchDatabase, statement: str) -> list[dict[str, object]]:
    with psycopg.connect(database.superuser_url, autocommit=True, row_factory=dict_row) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


@pytest.mark.parametrize(
    ("source", "autonomous", "expected"),
    [
        ("chat", False, True),
        ("chat", True, True),
        ("telegram", True, True),
        ("api", False, True),
        ("api", True, False),
        ("kitchen", True, False),
        ("job:morning", False, False),
        ("delegate:x", False, False),
        ("memory:x", False, False),
        ("grpc:api", False, False),
    ],
)
@pytest.mark.spec("FLD-008")
def test_who_attends_a_turn(source: str, autonomous: bool, expected: bool) -> None:
    assert attended(source, autonomous) is expected


@pytest.mark.spec("FLD-008")
async def test_time_ends_the_running_call_and_closes_the_rest(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    environ = {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": model_server.base_url}
    async with running_crew(database, config=ASKS, environ=environ) as crew:
        model_server.play(
            turn(
                {"call": {"name": "shell_run", "arguments": {"command": "echo begun; sleep 120"}}},
                {"call": {"name": "workspace_write", "arguments": {"path": "a.txt", "content": "1"}}},
            )
        )
        conversation_id = await crew.open(autonomous=True)
        inbound = turns_pb2.InboundRequest(text="go", conversation_id=conversation_id)
        assert (await crew.turns.Inbound(inbound)).status == "approval_required"
        # The default of an hour; the wait for the person is not counted, however long it is.
        [kept] = rows(database, "select seconds_left from runs")
        assert 3500 < float(str(kept["seconds_left"])) <= 3600
        await asyncio.sleep(1.5)
        assert rows(database, "select seconds_left from runs") == [kept]
        rows(database, "update runs set seconds_left = 1.5")
        events = await crew.decide(await crew.pending(conversation_id), approve=True)
        assert names_of(events)[-1] == "halted"
        assert events[-1].halted.reason == "time"
        assert "60 minutes" in events[-1].halted.text
        run = await crew.last_run(conversation_id)
        assert (run.status, run.summary) == ("halted", "time")
        ran, closed = (await crew.get(conversation_id)).messages[-2:]
        assert "begun" in ran.content
        assert closed.content == "Did not run: the turn ran out of time. Nothing changed."
        assert not (crew.workspace / "a.txt").exists()
        assert rows(database, "select 1 from turns") == []


@pytest.mark.spec("FLD-008")
async def test_time_ends_a_model_call_too(database: ScratchDatabase, model_server: ModelServer) -> None:
    environ = {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": model_server.base_url}
    async with running_crew(database, config=ASKS, environ=environ) as crew:
        gate = model_server.gate("never")
        model_server.play(
            turn({"call": {"name": "shell_run", "arguments": {"command": "true # sleep"}}}),
            turn({"text": "So far. "}, {"gate": "never"}, {"text": "More."}),
        )
        conversation_id = await crew.open(autonomous=True)
        await crew.turns.Inbound(turns_pb2.InboundRequest(text="go", conversation_id=conversation_id))
        rows(database, "update runs set seconds_left = 2")
        events = await crew.decide(await crew.pending(conversation_id), approve=True)
        gate.release()
        assert events[-1].halted.reason == "time"
        assert (await crew.get(conversation_id)).messages[-1].content == "So far. "


async def test_a_person_who_types_has_no_limit(crew: Crew, database: ScratchDatabase) -> None:
    await crew.send(await crew.open(autonomous=True), "hello")
    async for _ in crew.automation.Send(crew_pb2.SendRequest(text="hello")):
        pass
    limits = rows(database, "select source, seconds_left from runs order by n")
    assert limits == [
        {"source": "chat", "seconds_left": None},
        {"source": "grpc:api", "seconds_left": 3600.0},
    ]


@pytest.mark.spec("FLD-008")
async def test_a_turn_renewed_past_its_time_is_taken_away(crew: Crew, database: ScratchDatabase) -> None:
    conversation_id = await crew.open(autonomous=True)
    sending = asyncio.create_task(crew.send(conversation_id, SLEEP))

    async def runs_its_call() -> bool:
        return bool(rows(database, "select 1 from audit.calls where event = 'allowed'"))

    await until(runs_its_call)
    # As of a process that renews its lease and does not end the turn.
    rows(database, "update turns set ends_at = now() - interval '31 seconds'")
    events = await sending
    assert events[-1].halted.reason == "time"
    run = await crew.last_run(conversation_id)
    assert (run.status, run.summary) == ("halted", "time")
    last = (await crew.get(conversation_id)).messages[-1]
    assert last.role == "tool"
    assert "may or may not have taken effect" in last.content
    assert names_of(await crew.send(conversation_id, "still there?"))[-1] == "done"
