"""How many model calls a turn has, how it ends, and that every way in leads through the same gate."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from crew.v1 import crew_pb2, turns_pb2

from tests.fixtures.crew import Crew, Events, names_of, running_crew
from tests.fixtures.model_server import ModelServer, Turn, call, refuse, text
from tests.fixtures.postgres import ScratchDatabase

LOOK = call("workspace_list", {"path": "."})
WRITE = call("workspace_write", {"path": "a.txt", "content": "a"})
ENDINGS = {"done", "halted", "error", "approval_required"}


@pytest.fixture
async def asked(database: ScratchDatabase, model_server: ModelServer) -> AsyncIterator[Crew]:
    """A crew whose model is the scripted server and whose turns have three model calls."""
    environ = {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": model_server.base_url}
    async with running_crew(database, environ=environ, agent="max_steps: 3\n") as running:
        yield running


@pytest.mark.spec("TRN-102", "TRN-098")
async def test_words_at_the_last_allowed_call_are_done_and_not_halted(
    asked: Crew, model_server: ModelServer
) -> None:
    model_server.play(LOOK, LOOK, text("All there."))
    events = await asked.send(await asked.open(), "Go")
    assert events[-1].done.text == "All there."
    assert events[-1].done.steps == 3


@pytest.mark.spec("TRN-105", "TRN-103")
async def test_calls_before_a_pause_count_after_it(asked: Crew, model_server: ModelServer) -> None:
    model_server.play(LOOK, WRITE, LOOK, text("Not asked."))
    conversation_id = await asked.open()
    assert names_of(await asked.send(conversation_id, "Go"))[-1] == "approval_required"
    events = await asked.decide(await asked.pending(conversation_id), approve=True)
    assert events[-1].halted.reason == "max_steps"
    assert events[-1].halted.steps == 3
    assert len(model_server.requests) == 3
    last = (await asked.get(conversation_id)).messages[-1]
    assert last.role == "tool"
    assert last.is_error


@pytest.mark.spec("TRN-106")
@pytest.mark.parametrize(
    ("turns", "ending", "status"),
    [
        ([text("Yes.")], "done", "done"),
        ([LOOK, LOOK, LOOK], "halted", "halted"),
        ([refuse(402, "no money")], "error", "error"),
        ([WRITE], "approval_required", "awaiting_approval"),
    ],
)
async def test_a_turn_ends_in_exactly_one_way(
    asked: Crew, model_server: ModelServer, turns: list[Turn], ending: str, status: str
) -> None:
    model_server.play(*turns)
    conversation_id = await asked.open()
    events = await asked.send(conversation_id, "Go")
    assert [name for name in names_of(events) if name in ENDINGS] == [ending]
    assert names_of(events)[-1] == ending
    assert (await asked.last_run(conversation_id)).status == status


async def _by_page(crew: Crew) -> str:
    conversation_id = await crew.open()
    await crew.send(conversation_id, "Go")
    return conversation_id


async def _by_inbound(crew: Crew) -> str:
    reply = await crew.turns.Inbound(turns_pb2.InboundRequest(text="Go", channel="api:relay"))
    return str(reply.conversation_id)


async def _by_program(crew: Crew) -> str:
    events: Events = [event async for event in crew.automation.Send(crew_pb2.SendRequest(text="Go"))]
    return events[0].conversation_id


@pytest.mark.spec("TRN-122", "TRN-034")
@pytest.mark.parametrize("way", [_by_page, _by_inbound, _by_program])
async def test_every_way_in_leads_through_the_same_gate(
    asked: Crew, model_server: ModelServer, way: Callable[[Crew], Awaitable[str]]
) -> None:
    model_server.play(WRITE)
    conversation_id = await way(asked)
    assert await asked.pending(conversation_id)
    assert not (asked.workspace / "a.txt").exists()
    assert (await asked.last_run(conversation_id)).status == "awaiting_approval"


@pytest.mark.spec("TRN-118")
async def test_notes_of_the_loop_are_not_the_persons_and_open_nothing(
    asked: Crew, model_server: ModelServer
) -> None:
    model_server.play(text("  "), text("There."), text("Again."))
    conversation_id = await asked.open()
    await asked.send(conversation_id, "Go")
    await asked.send(conversation_id, "Next")
    stored = (await asked.get(conversation_id)).messages
    note = next(message for message in stored if message.author == "system")
    assert (note.role, note.context) == ("user", "")
    run = await asked.last_run(conversation_id)
    assert run.after_seq == stored[-3].seq
    assert [message.author for message in stored if message.role == "user"] == ["person", "system", "person"]


@pytest.mark.spec("TRN-236", "TRN-235")
@pytest.mark.parametrize(
    ("profile", "variable", "config", "expected"),
    [
        ("routes: openai:own, openai:spare\n", "openai:env", "routes: [openai:file]\n", ["own", "spare"]),
        ("routes: [openai:a/b:c]\n", "openai:env", "", ["a/b:c"]),
        ("", "openai:env,openai:second", "routes: [openai:file]\n", ["env", "second"]),
        ("", "", "routes: openai:file, openai:next\n", ["file", "next"]),
    ],
)
async def test_routes_come_from_the_profile_then_the_environment_then_the_file(
    database: ScratchDatabase,
    model_server: ModelServer,
    profile: str,
    variable: str,
    config: str,
    expected: list[str],
) -> None:
    environ = {"MY_AGENT_ROUTES": variable, "OPENAI_BASE_URL": model_server.base_url}
    async with running_crew(database, environ=environ, agent=profile, config=config) as crew:
        model_server.script.default = refuse(402)
        await crew.send(await crew.open(), "Go")
        assert [request.body["model"] for request in model_server.requests] == expected
