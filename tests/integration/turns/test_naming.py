"""A model names a conversation once, in the background, and never against a person."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

import psycopg
import pytest
from crew.v1 import conversations_pb2, runs_pb2

from tests.fixtures.crew import Crew, running_crew, until
from tests.fixtures.model_server import ModelServer, Rule, Turn, call, refuse, text, turn
from tests.fixtures.postgres import ScratchDatabase

NAMER = "namer"


@pytest.fixture
async def crew(database: ScratchDatabase, model_server: ModelServer) -> AsyncIterator[Crew]:
    environ = {
        "MY_AGENT_ROUTES": "openai:test",
        "MY_AGENT_TITLE_ROUTE": f"openai:{NAMER}",
        "OPENAI_BASE_URL": model_server.base_url,
    }
    async with running_crew(database, environ=environ) as running:
        yield running


def names(model_server: ModelServer, *turns: object) -> None:
    model_server.script.rules.append(Rule(turns=deque(Turn.read(each) for each in turns), model=NAMER))


def asked(model_server: ModelServer, model: str) -> int:
    return sum(1 for request in model_server.requests if request.body["model"] == model)


async def title_of(crew: Crew, conversation_id: str) -> str:
    return (await crew.get(conversation_id)).title


async def rename(crew: Crew, conversation_id: str, title: str) -> None:
    request = conversations_pb2.UpdateConversationRequest(id=conversation_id, title=title)
    request.update_mask.paths.append("title")
    await crew.conversations.Update(request)


@pytest.mark.spec("TRN-016", "TRN-015", "TRN-264", "TRN-265")
async def test_the_first_turn_names_the_conversation_and_only_it_moves_the_list(
    crew: Crew, model_server: ModelServer
) -> None:
    gate = model_server.gate("naming")
    names(model_server, turn({"gate": "naming"}, {"text": '"Milk  for Monday"\nBecause …'}))
    conversation_id = await crew.open()
    frames = crew.runs.Activity(runs_pb2.ActivityRequest())
    await frames.read()
    await crew.send(conversation_id, "Please remember to buy milk")
    await gate.reached()
    before = await crew.get(conversation_id)
    assert before.title == "Please remember to buy milk"
    gate.release()
    async with asyncio.timeout(30):
        while (frame := await frames.read()).conversation.title != "Milk for Monday":
            assert frame.conversation.title in ("", "Please remember to buy milk")
    frames.cancel()
    after = await crew.get(conversation_id)
    assert after.title == "Milk for Monday"
    assert after.updated_at == before.updated_at
    assert after.spent_usd == pytest.approx(before.spent_usd + 0.001)
    prompt = next(one.body for one in model_server.requests if one.body["model"] == NAMER)["messages"]
    assert "Please remember to buy milk" in prompt[-1]["content"]
    assert prompt[-1]["content"].startswith("<<<")
    async with await psycopg.AsyncConnection.connect(crew.database.url) as connection:
        cursor = await connection.execute(
            "select purpose, provider, model, prompt_tokens, cost_usd::float8 from side_calls"
        )
        assert await cursor.fetchall() == [("title", "openai", NAMER, 100, 0.001)]
    await crew.send(conversation_id, "and bread")
    assert asked(model_server, NAMER) == 1


@pytest.mark.spec("TRN-016")
async def test_a_person_who_renames_while_the_model_thinks_wins(
    crew: Crew, model_server: ModelServer
) -> None:
    gate = model_server.gate("naming")
    names(model_server, turn({"gate": "naming"}, {"text": "By the model"}))
    conversation_id = await crew.open()
    await crew.send(conversation_id, "hello")
    await gate.reached()
    await rename(crew, conversation_id, "Mine")
    gate.release()

    async def paid() -> bool:
        return (await crew.get(conversation_id)).spent_usd > 0.0015

    await until(paid)
    assert await title_of(crew, conversation_id) == "Mine"


@pytest.mark.spec("TRN-016")
async def test_no_model_is_paid_for_what_was_deleted_or_renamed_while_naming_waited(
    crew: Crew, model_server: ModelServer
) -> None:
    gate = model_server.gate("first")
    names(model_server, turn({"gate": "first"}, {"text": "First"}), text("Too late"))
    first, renamed, deleted, last = [await crew.open() for _ in range(4)]
    await crew.send(first, "one")
    await gate.reached()
    # One is named at a time: these wait.
    for conversation_id in (renamed, deleted):
        await crew.send(conversation_id, "two")
    await rename(crew, renamed, "Mine")
    await crew.conversations.Delete(conversations_pb2.DeleteConversationRequest(id=deleted))
    gate.release()
    await crew.send(last, "three")

    async def named() -> bool:
        return await title_of(crew, last) == "Too late"

    await until(named)
    assert asked(model_server, NAMER) == 2
    assert await title_of(crew, renamed) == "Mine"


@pytest.mark.spec("TRN-016")
async def test_a_turn_that_waits_is_named_when_it_has_ended(crew: Crew, model_server: ModelServer) -> None:
    names(model_server, text("A file"))
    model_server.play(call("workspace_write", {"path": "a.txt", "content": "1"}), text("done"))
    conversation_id = await crew.open()
    await crew.send(conversation_id, "write")
    assert await title_of(crew, conversation_id) == "write"
    await crew.decide(await crew.pending(conversation_id), approve=True)

    async def named() -> bool:
        return await title_of(crew, conversation_id) == "A file"

    await until(named)
    assert asked(model_server, NAMER) == 1


@pytest.mark.parametrize("answer", [refuse(402), text(' "" \n'), call("shell_run", {"command": "x"})])
async def test_a_model_that_names_nothing_leaves_the_first_words(
    crew: Crew, model_server: ModelServer, answer: object
) -> None:
    names(model_server, answer)
    conversation_id = await crew.open()
    await crew.send(conversation_id, "hello")

    async def tried() -> bool:
        return asked(model_server, NAMER) == 1

    await until(tried)
    await crew.send(conversation_id, "again")
    await crew.end("orchestrator")
    await crew.start("orchestrator")
    assert await title_of(crew, conversation_id) == "hello"
    assert asked(model_server, NAMER) == 1


async def test_a_long_title_is_cut_and_a_title_given_at_the_opening_stays(
    crew: Crew, model_server: ModelServer
) -> None:
    names(model_server, text("word " * 50))
    titled = (await crew.conversations.Create(conversations_pb2.CreateConversationRequest(title="Given"))).id
    await crew.send(titled, "hello")
    conversation_id = await crew.open()
    await crew.send(conversation_id, "hello")

    async def named() -> bool:
        return await title_of(crew, conversation_id) != "hello"

    await until(named)
    title = await title_of(crew, conversation_id)
    assert len(title) <= 60
    assert title.endswith("word…")
    assert await title_of(crew, titled) == "Given"
    assert asked(model_server, NAMER) == 1
