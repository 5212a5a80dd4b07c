"""A reply that broke off after its first words goes on: by itself where nobody attends, else when told to."""

from __future__ import annotations

from collections.abc import AsyncIterator

import grpc
import pytest
from crew.v1 import crew_pb2, turns_pb2

from tests.fixtures.crew import Crew, Events, http_status_of, names_of, running_crew
from tests.fixtures.model_server import ModelServer, Turn, call, text, turn
from tests.fixtures.postgres import ScratchDatabase

BROKEN = turn({"text": "The answer is for", "pieces": 1}, {"drop": True})
REST = text("ty-two.")


@pytest.fixture
async def asked(database: ScratchDatabase, model_server: ModelServer) -> AsyncIterator[Crew]:
    """A crew whose model is the scripted server."""
    environ = {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": model_server.base_url}
    async with running_crew(database, environ=environ, agent="max_steps: 3\n") as running:
        yield running


async def unattended(crew: Crew, words: str = "What is it?") -> tuple[str, Events]:
    """Send a message as a program does, and read its turn to the end."""
    events = [event async for event in crew.automation.Send(crew_pb2.SendRequest(text=words))]
    return events[0].conversation_id, events


async def go_on(crew: Crew, conversation_id: str) -> Events:
    """Continue, as the page's button does."""
    return await crew.read(
        crew.turns.Continue(turns_pb2.ContinueTurnRequest(conversation_id=conversation_id))
    )


async def roles(crew: Crew, conversation_id: str) -> list[tuple[str, str]]:
    """Authors and texts of the conversation."""
    stored = await crew.get(conversation_id)
    return [(message.author, message.content) for message in stored.messages]


@pytest.mark.spec("FLD-013")
async def test_an_unattended_turn_goes_on_from_what_was_said(asked: Crew, model_server: ModelServer) -> None:
    model_server.play(BROKEN, REST)
    conversation_id, events = await unattended(asked)
    assert names_of(events) == ["assistant_message", "assistant_message", "done"]
    assert events[-1].done.text == "The answer is forty-two."
    asked_again = model_server.requests[1].messages
    assert asked_again[-2] == {"role": "assistant", "content": "The answer is for"}
    assert asked_again[-1]["role"] == "user"
    assert "exactly where it stopped" in asked_again[-1]["content"]
    said = await roles(asked, conversation_id)
    assert [said[1], said[3]] == [("agent", "The answer is for"), ("agent", "ty-two.")]
    assert said[2][0] == "system"
    run = await asked.last_run(conversation_id)
    assert [step.kind for step in run.steps] == ["model", "continued", "model"]
    assert "broke off" in run.steps[0].error
    assert run.steps[1].route == "openai:test"
    assert (run.status, run.unknown_cost_calls) == ("done", 1)


@pytest.mark.spec("FLD-013")
async def test_the_second_break_ends_the_turn(asked: Crew, model_server: ModelServer) -> None:
    model_server.play(BROKEN, BROKEN, REST)
    conversation_id, events = await unattended(asked)
    assert names_of(events)[-1] == "error"
    assert len(model_server.requests) == 2
    assert (await asked.get(conversation_id)).unknown_cost_calls == 2


@pytest.mark.spec("FLD-013", "TRN-239")
@pytest.mark.parametrize(
    "broken",
    [
        turn(
            {"text": "I look. ", "pieces": 1},
            {"call": {"name": "workspace_list", "arguments": '{"pa'}},
            {"drop": True},
        ),
    ],
)
async def test_a_call_that_had_begun_is_not_gone_on_with(
    asked: Crew, model_server: ModelServer, broken: Turn
) -> None:
    model_server.play(broken, REST)
    conversation_id, events = await unattended(asked)
    assert names_of(events)[-1] == "error"
    assert len(model_server.requests) == 1
    assert (await roles(asked, conversation_id))[-1] == ("agent", "I look. ")


@pytest.mark.spec("FLD-013")
async def test_the_last_step_of_a_turn_is_not_repeated(asked: Crew, model_server: ModelServer) -> None:
    look = call("workspace_list", {"path": "."})
    model_server.play(look, look, BROKEN, REST)
    _, events = await unattended(asked)
    assert names_of(events)[-1] == "error"
    assert len(model_server.requests) == 3


@pytest.mark.spec("FLD-013", "TRN-239")
async def test_an_attended_turn_ends_and_goes_on_when_told_to(asked: Crew, model_server: ModelServer) -> None:
    model_server.play(BROKEN, REST, text("Gladly."))
    conversation_id = await asked.open()
    events = await asked.send(conversation_id, "What is it?")
    assert names_of(events)[-1] == "error"
    assert len(model_server.requests) == 1
    events = await go_on(asked, conversation_id)
    assert events[-1].done.text == "ty-two."
    again = model_server.requests[1].messages
    assert [message["role"] for message in again[1:]] == ["user", "assistant", "user"]
    assert again[:2] == model_server.requests[0].messages[:2]
    await asked.send(conversation_id, "Thanks!")
    rows = await roles(asked, conversation_id)
    assert [author for author, _ in rows] == ["person", "agent", "system", "agent", "person", "agent"]


@pytest.mark.spec("FLD-013")
async def test_there_must_be_something_to_go_on_with(asked: Crew, model_server: ModelServer) -> None:
    model_server.play(text("Whole."), turn({"text": "Hm"}, {"gate": "held"}, {"text": " yes."}))
    conversation_id = await asked.open()
    await asked.send(conversation_id, "Hello")
    before = await roles(asked, conversation_id)
    for found, status in ((conversation_id, 400), ("6f1f3c0e-0000-4000-8000-000000000000", 404)):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await go_on(asked, found)
        assert http_status_of(refused.value)[0] == status
    assert await roles(asked, conversation_id) == before
    sending = asked.sending(conversation_id, "Again")
    await model_server.gate("held").reached()
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await go_on(asked, conversation_id)
    assert http_status_of(refused.value) == (409, "BUSY")
    model_server.gate("held").release()
    await asked.read(sending)
