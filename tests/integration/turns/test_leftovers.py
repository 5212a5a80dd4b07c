"""What earlier turns left behind: open calls, stale claims, paused runs that wait for nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import grpc
import psycopg
import pytest
from crew.v1 import runs_pb2, turns_pb2
from psycopg.types.json import Json

from tests.fixtures.crew import Crew, http_status_of, names_of, running_crew, until
from tests.fixtures.killable import held
from tests.fixtures.model_server import ModelServer, call, text
from tests.fixtures.postgres import ScratchDatabase

WRITE = {"path": "made.txt", "content": "once\n"}
INTERRUPTED = "may or may not have"


@pytest.fixture
async def asked(database: ScratchDatabase, model_server: ModelServer) -> AsyncIterator[Crew]:
    """A crew whose model is the scripted server."""
    environ = {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": model_server.base_url}
    async with running_crew(database, environ=environ) as running:
        yield running


async def status(crew: Crew, run_id: str) -> tuple[str, str]:
    run = await crew.runs.Get(runs_pb2.GetRunRequest(id=run_id))
    return run.status, run.summary


@pytest.mark.spec("TRN-142", "TRN-144", "TRN-146")
async def test_open_calls_get_their_results_before_the_new_message(
    asked: Crew, model_server: ModelServer
) -> None:
    model_server.play(text("One."), text("Two."), text("Three."))
    conversation_id = await asked.open()
    await asked.send(conversation_id, "first")
    calls = [
        {"id": str(uuid4()), "name": name, "arguments": "{}", "provider_id": f"call_{name}"}
        for name in ("workspace_list", "shell_run")
    ]
    with psycopg.connect(asked.database.superuser_url, autocommit=True) as connection:
        # As an older process may have left it: one call has its result, the other has none.
        connection.execute(
            "update messages set tool_calls = %s where conversation_id = %s and seq = 2",
            (Json(calls), conversation_id),
        )
        connection.execute(
            "insert into messages (conversation_id, seq, role, author, content, tool_call_id, name) "
            "values (%s, 3, 'tool', 'tool', 'made.txt', %s, 'workspace_list')",
            (conversation_id, calls[0]["id"]),
        )
        connection.execute("update conversations set last_seq = 3 where id = %s", (conversation_id,))
    assert names_of(await asked.send(conversation_id, "second"))[-1] == "done"
    messages = (await asked.get(conversation_id)).messages
    assert [message.role for message in messages] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "user",
        "assistant",
    ]
    assert messages[3].tool_call_id == calls[1]["id"]
    assert INTERRUPTED in messages[3].content
    assert messages[3].is_error
    # Now that every call has its result, nothing is added.
    await asked.send(conversation_id, "third")
    assert len((await asked.get(conversation_id)).messages) == 8
    run = await asked.last_run(conversation_id)
    assert run.after_seq == 6


@pytest.mark.spec("TRN-145", "TRN-097")
async def test_a_call_that_waits_for_a_person_stays_open_whatever_comes(
    asked: Crew, model_server: ModelServer
) -> None:
    model_server.play(call("workspace_write", WRITE), text("Written."))
    conversation_id = await asked.open()
    await asked.send(conversation_id, "Write it.")
    approval_id = await asked.pending(conversation_id)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await asked.send(conversation_id, "And?")
    assert http_status_of(refused.value)[0] == 409
    stopped = await asked.turns.Stop(turns_pb2.StopTurnRequest(conversation_id=conversation_id))
    assert (list(stopped.cleared), stopped.cancelled) == ([], False)
    found = await asked.get(conversation_id)
    assert [message.role for message in found.messages] == ["user", "assistant"]
    assert found.pending_approval.id == approval_id
    assert names_of(await asked.decide(approval_id, approve=True))[-1] == "done"
    assert (asked.workspace / "made.txt").read_text() == "once\n"


@pytest.mark.spec("TRN-092")
async def test_no_process_of_a_stopped_turn_is_left_when_the_stop_answers(
    asked: Crew, model_server: ModelServer
) -> None:
    token = "7" + str(uuid4().int)[:6]
    command = f"sleep 9{token} & touch begun; sleep 8{token}"
    model_server.play(call("shell_run", {"command": command}))
    conversation_id = await asked.open(autonomous=True)
    running = asyncio.create_task(asked.send(conversation_id, "Run it."))

    def processes() -> list[str]:
        found = []
        for each in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                line = each.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if line.startswith("sleep ") and token in line:
                found.append(line)
        return found

    async def begun() -> bool:
        return (asked.workspace / "begun").exists() and len(processes()) == 2

    await until(begun)
    await asked.turns.Stop(turns_pb2.StopTurnRequest(conversation_id=conversation_id))
    assert processes() == []
    assert names_of(await running)[-1] == "error"


@pytest.mark.spec("TRN-159", "TRN-158", "TRN-157")
async def test_paused_runs_with_nothing_to_wait_for_are_closed_at_the_next_start(
    asked: Crew, model_server: ModelServer
) -> None:
    model_server.play(*(call("workspace_write", WRITE) for _ in range(3)))
    waiting, settled, gone = [await asked.open() for _ in range(3)]
    for conversation_id in (waiting, settled, gone):
        await asked.send(conversation_id, "Write it.")
    runs = {each: (await asked.last_run(each)).id for each in (waiting, settled, gone)}
    older, foreign, left = (str(uuid4()) for _ in range(3))
    await asked.end("orchestrator")
    with psycopg.connect(asked.database.superuser_url, autocommit=True) as connection:
        connection.execute("update approvals set status = 'denied' where conversation_id = %s", (settled,))
        connection.execute("delete from conversations where id = %s", (gone,))
        for run_id, conversation_id, state in (
            # An older pause of a conversation whose newest one waits.
            (older, waiting, "awaiting_approval"),
            # Its request belongs to another conversation.
            (foreign, settled, "awaiting_approval"),
            (left, settled, "running"),
        ):
            connection.execute(
                "insert into runs (id, conversation_id, agent_id, source, status, after_seq) "
                "values (%s, %s, 'default', 'chat', %s, 0)",
                (run_id, conversation_id, state),
            )
    await asked.start("orchestrator")
    for run_id in (runs[settled], runs[gone], older, foreign, left):
        assert await status(asked, run_id) == ("error", "interrupted")
    assert (await status(asked, runs[waiting]))[0] == "awaiting_approval"


@pytest.mark.spec("TRN-211")
async def test_the_sweep_leaves_a_request_alone_that_a_decision_holds(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    environ = {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": model_server.base_url}
    model_server.play(call("workspace_write", WRITE), text("Written."))
    async with running_crew(database, config="approval_ttl_seconds: 2\n", environ=environ) as crew:
        conversation_id = await crew.open()
        await crew.send(conversation_id, "Write it.")
        approval_id = await crew.pending(conversation_id)
        async with held(crew, "approvals", "new.status = 'approved'") as point:
            deciding = asyncio.create_task(crew.decide(approval_id, approve=True))
            await point.reached()
            # The time is up while the decision is under way, and the sweep comes by.
            await asyncio.sleep(4)
            await point.release()
            assert names_of(await deciding)[-1] == "done"
        with psycopg.connect(database.superuser_url) as connection:
            assert connection.execute("select status from approvals").fetchall() == [("approved",)]
        assert (crew.workspace / "made.txt").exists()


@pytest.mark.spec("TRN-214", "TRN-213")
async def test_without_a_sweep_a_late_decision_is_refused_and_closes_the_request(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    environ = {
        "MY_AGENT_ROUTES": "openai:test",
        "OPENAI_BASE_URL": model_server.base_url,
        "MY_AGENT_SCHEDULE": "off",
    }
    model_server.play(call("workspace_write", WRITE), text("Not written."))
    async with running_crew(database, config="approval_ttl_seconds: 1\n", environ=environ) as crew:
        conversation_id = await crew.open()
        await crew.send(conversation_id, "Write it.")
        approval_id = await crew.pending(conversation_id)
        await asyncio.sleep(2.5)
        # Nobody swept it.
        assert await crew.pending(conversation_id) == approval_id
        with pytest.raises(grpc.aio.AioRpcError) as late:
            await crew.decide(approval_id, approve=True)
        assert http_status_of(late.value) == (409, "ALREADY_DECIDED")

        async def over() -> bool:
            found = await crew.get(conversation_id)
            return not found.running and len(found.messages) == 4

        await until(over)
        found = await crew.get(conversation_id)
        assert found.messages[2].is_error
        assert found.messages[3].content == "Not written."
        assert not (crew.workspace / "made.txt").exists()


@pytest.mark.spec("TRN-038")
async def test_a_claim_that_nobody_works_on_expires_and_what_waited_is_answered(
    asked: Crew, model_server: ModelServer
) -> None:
    model_server.play(text("One."), text("Two."))
    conversation_id, run_id = await asked.open(), str(uuid4())
    with psycopg.connect(asked.database.superuser_url, autocommit=True) as connection:
        instance = connection.execute("select instance from orchestrators").fetchone()
        assert instance is not None
        with connection.transaction():
            connection.execute(
                "insert into runs (id, conversation_id, agent_id, source, status, after_seq) "
                "values (%s, %s, 'default', 'chat', 'running', 0)",
                (run_id, conversation_id),
            )
            connection.execute(
                "insert into messages (conversation_id, seq, role, author, content, run_id) "
                "values (%s, 1, 'user', 'person', 'one', %s)",
                (conversation_id, run_id),
            )
            connection.execute("update conversations set last_seq = 1 where id = %s", (conversation_id,))
            # Of a living process, which never took the turn up and so does not renew it.
            connection.execute(
                "insert into turns (conversation_id, run_id, instance, epoch, lease_until) "
                "values (%s, %s, %s, nextval('turn_epochs'), now() + interval '3 s')",
                (conversation_id, run_id, instance[0]),
            )
    assert names_of(await asked.send(conversation_id, "two")) == ["queued"]

    async def over() -> bool:
        found = await asked.get(conversation_id)
        return not found.running and len(found.messages) == 4

    assert (await asked.get(conversation_id)).running
    await until(over)
    contents = [message.content for message in (await asked.get(conversation_id)).messages]
    assert contents == ["one", "One.", "two", "Two."]
