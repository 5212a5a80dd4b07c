"""Messages that meet a running turn: what joins it, what waits, and who answers what is left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest
from crew.v1 import runs_pb2, turns_pb2

from tests.fixtures.crew import Crew, names_of, running_crew, until
from tests.fixtures.model_server import ModelServer, call, text, turn
from tests.fixtures.postgres import ScratchDatabase

LIST = {"call": {"name": "workspace_list", "arguments": {"path": "."}}}


def environ(model_server: ModelServer) -> dict[str, str]:
    return {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": model_server.base_url}


@pytest.fixture
async def asked(database: ScratchDatabase, model_server: ModelServer) -> AsyncIterator[Crew]:
    """A crew whose model is the scripted server."""
    async with running_crew(database, environ=environ(model_server)) as running:
        yield running


async def answered(crew: Crew, conversation_id: str, messages: int) -> list[tuple[str, str]]:
    """Role and text of the log, when nothing runs or waits and so many messages are in it."""

    async def over() -> bool:
        found = await crew.get(conversation_id)
        return not found.running and not found.queued and len(found.messages) >= messages

    await until(over)
    return [(message.role, message.content) for message in (await crew.get(conversation_id)).messages]


async def sources(crew: Crew, conversation_id: str) -> list[str]:
    """Of the conversation's runs, the first one first."""
    reply = await crew.runs.List(runs_pb2.RunsRequest(conversation_id=conversation_id))
    return [run.source for run in reversed(reply.runs)]


@pytest.mark.spec("TRN-067")
async def test_the_first_waiting_message_gives_the_next_turn_its_source(
    asked: Crew, model_server: ModelServer
) -> None:
    gate = model_server.gate("first")
    model_server.play(turn({"gate": "first"}, {"text": "One."}), text("Both."))
    conversation_id = await asked.open()
    running = asyncio.create_task(asked.send(conversation_id, "start"))
    await gate.reached()
    inbound = turns_pb2.InboundRequest(text="one", conversation_id=conversation_id, source="slack:team")
    assert (await asked.turns.Inbound(inbound)).status == "queued"
    await asked.send(conversation_id, "two")
    gate.release()
    await running
    await answered(asked, conversation_id, 4)
    assert await sources(asked, conversation_id) == ["chat", "slack:team"]


@pytest.mark.spec("TRN-068", "TRN-076")
async def test_a_steer_waits_for_the_running_tool_and_does_not_interrupt_it(
    asked: Crew, model_server: ModelServer
) -> None:
    command = "touch begun; while [ ! -e go ]; do sleep 0.05; done; echo ended"
    model_server.play(call("shell_run", {"command": command}), text("Seen."))
    conversation_id = await asked.open(autonomous=True)
    running = asyncio.create_task(asked.send(conversation_id, "Run it."))

    async def begun() -> bool:
        return (asked.workspace / "begun").exists()

    await until(begun)
    [queued] = await asked.send(conversation_id, "/steer look at B")
    assert (queued.queued.kind, queued.queued.position) == ("steer", 1)
    # The tool goes on and the model is not asked meanwhile.
    assert len(model_server.requests) == 1
    assert (await asked.get(conversation_id)).queued[0].kind == "steer"
    (asked.workspace / "go").touch()
    assert names_of(await running)[-1] == "done"
    log = await answered(asked, conversation_id, 5)
    assert [role for role, _ in log] == ["user", "assistant", "tool", "user", "assistant"]
    assert "ended" in log[2][1]
    assert log[3][1] == "look at B"


@pytest.mark.spec("TRN-074")
async def test_a_steer_behind_the_last_look_is_answered_like_a_plain_message(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    gate = model_server.gate("last")
    model_server.play(turn({"text": "The "}, {"gate": "last"}, {"text": "answer."}), text("And B."))
    # The only step: there is no next one at whose start a steer could be taken.
    async with running_crew(database, agent="max_steps: 1\n", environ=environ(model_server)) as crew:
        conversation_id = await crew.open()
        running = asyncio.create_task(crew.send(conversation_id, "start"))
        await gate.reached()
        await crew.send(conversation_id, "/steer look at B")
        gate.release()
        assert (await running)[-1].done.text == "The answer."
        assert await answered(crew, conversation_id, 4) == [
            ("user", "start"),
            ("assistant", "The answer."),
            ("user", "look at B"),
            ("assistant", "And B."),
        ]
        assert await sources(crew, conversation_id) == ["chat", "chat"]


@pytest.mark.spec("TRN-075")
async def test_a_steer_leaves_plain_messages_waiting_and_restarts_the_loop_guard(
    asked: Crew, model_server: ModelServer
) -> None:
    gate = model_server.gate("second")
    model_server.play(
        turn(LIST), turn({"gate": "second"}, LIST), turn(LIST), turn(LIST), text("Done."), text("Later.")
    )
    conversation_id = await asked.open()
    running = asyncio.create_task(asked.send(conversation_id, "start"))
    await gate.reached()
    await asked.send(conversation_id, "for later")
    await asked.send(conversation_id, "/steer go on")
    gate.release()
    assert names_of(await running)[-1] == "done"
    log = await answered(asked, conversation_id, 13)
    # Twice before the steer and twice behind it: no third in a row, so no note of the guard.
    assert [text for role, text in log if role == "user"] == ["start", "go on", "for later"]
    assert log[-2:] == [("user", "for later"), ("assistant", "Later.")]


@pytest.mark.spec("TRN-083")
async def test_without_a_schedule_nothing_starts_until_somebody_speaks(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    model_server.play(text("Here."))
    async with running_crew(database, environ={**environ(model_server), "MY_AGENT_SCHEDULE": "off"}) as crew:
        conversation_id, other = await crew.open(), await crew.open()
        with psycopg.connect(database.superuser_url, autocommit=True) as connection:
            connection.execute(
                "insert into queued_messages (conversation_id, kind, text, source) "
                "values (%s, 'follow_up', 'left behind', 'chat')",
                (conversation_id,),
            )
        # A turn elsewhere comes and goes, and several looks of the upkeep with it.
        await crew.send(other, "hello")
        await asyncio.sleep(2.5)
        found = await crew.get(conversation_id)
        assert ([item.text for item in found.queued], found.running) == (["left behind"], False)
        assert not found.messages
        await crew.send(conversation_id, "And?")
        log = await answered(crew, conversation_id, 2)
        said = "\n\n".join(text for role, text in log if role == "user")
        assert (said.count("left behind"), said.count("And?")) == (1, 1)


@pytest.mark.spec("TRN-084", "TRN-081")
async def test_at_shutdown_no_turn_begins_for_what_waits_and_the_next_start_answers_it(
    asked: Crew, model_server: ModelServer
) -> None:
    gate = model_server.gate("first")
    model_server.play(turn({"gate": "first"}, {"text": "Never seen."}), text("One."), text("Two."))
    conversation_id = await asked.open()
    running = asked.sending(conversation_id, "one")
    await gate.reached()
    await asked.send(conversation_id, "two")
    await asked.end("orchestrator")
    running.cancel()
    with psycopg.connect(asked.database.superuser_url) as connection:
        left = connection.execute(
            "select (select count(*) from queued_messages), (select count(*) from runs), "
            "(select count(*) from messages)"
        ).fetchone()
    # The turn that ran was let go of, and none was begun in its place.
    assert left == (1, 1, 1)
    gate.release()
    await asked.start("orchestrator")
    assert await answered(asked, conversation_id, 4) == [
        ("user", "one"),
        ("assistant", "One."),
        ("user", "two"),
        ("assistant", "Two."),
    ]
