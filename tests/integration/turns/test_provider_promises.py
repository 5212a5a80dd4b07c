"""What providers are owed in a turn: their own fields back, ids of their own, and an answer to every call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from crew.v1 import messages_pb2, messages_pb2_grpc

from tests.fixtures.crew import Crew, names_of, running_crew, until
from tests.fixtures.model_server import ModelServer, Script, Turn, call, refuse, text, turn
from tests.fixtures.postgres import ScratchDatabase

THOUGHT = "zebra-thought"


class Demanding(Script):
    """Refuses a request whose earlier replies with calls come without their thoughts."""

    def choose(self, body: Mapping[str, Any]) -> Turn:
        """The next turn, or the refusal."""
        for message in body["messages"]:
            if message.get("tool_calls") and not str(message.get("reasoning_content")).startswith(THOUGHT):
                return refuse(400, "The `reasoning_content` in the thinking mode must be passed back.")
        return super().choose(body)


def look(number: int, *steps: Mapping[str, Any], path: str = ".") -> Turn:
    """A thought and a call."""
    reads = {"call": {"name": "workspace_list", "arguments": {"path": path}}}
    return turn(*steps, {"reasoning": f"{THOUGHT} {number}"}, reads)


@pytest.fixture
async def asked(database: ScratchDatabase, model_server: ModelServer) -> AsyncIterator[Crew]:
    """A crew whose model is the scripted server."""
    model_server.script = Demanding()
    environ = {"MY_AGENT_ROUTES": "openai:deep", "OPENAI_BASE_URL": model_server.base_url}
    async with running_crew(database, environ=environ) as running:
        yield running


def thoughts(server: ModelServer) -> list[str]:
    """What the newest request gave back."""
    return [
        message["reasoning_content"]
        for message in server.requests[-1].messages
        if message.get("reasoning_content")
    ]


@pytest.mark.spec("FLD-001")
async def test_three_rounds_of_tools_end_with_a_provider_that_wants_its_thoughts_back(
    asked: Crew, model_server: ModelServer
) -> None:
    model_server.play(look(1), look(2), look(3), text("Done."), text("Again."))
    conversation_id = await asked.open()
    assert (await asked.send(conversation_id, "Go"))[-1].done.text == "Done."
    assert thoughts(model_server) == [f"{THOUGHT} {number}" for number in (1, 2, 3)]
    await asked.send(conversation_id, "And again")
    assert thoughts(model_server) == [f"{THOUGHT} {number}" for number in (1, 2, 3)]


@pytest.mark.spec("FLD-001")
async def test_thoughts_go_back_after_a_restart_between_rounds(
    asked: Crew, model_server: ModelServer
) -> None:
    model_server.play(look(1), look(2, {"gate": "second"}), look(2), text("Done."))
    conversation_id = await asked.open()
    sending = asked.sending(conversation_id, "Go")
    await model_server.gate("second").reached()
    await asked.end("orchestrator")
    sending.cancel()
    await asked.start("orchestrator")

    async def done() -> bool:
        return (await asked.last_run(conversation_id)).status == "done"

    await until(done)
    assert thoughts(model_server) == [f"{THOUGHT} 1", f"{THOUGHT} 2"]


@pytest.mark.spec("FLD-001")
async def test_thoughts_go_back_after_an_approval_pause(asked: Crew, model_server: ModelServer) -> None:
    write = {"call": {"name": "workspace_write", "arguments": {"path": "a.txt", "content": "a"}}}
    model_server.play(look(1), turn({"reasoning": f"{THOUGHT} 2"}, write), text("Done."))
    conversation_id = await asked.open()
    assert names_of(await asked.send(conversation_id, "Go"))[-1] == "approval_required"
    events = await asked.decide(await asked.pending(conversation_id), approve=True)
    assert events[-1].done.text == "Done."
    assert thoughts(model_server) == [f"{THOUGHT} 1", f"{THOUGHT} 2"]


@pytest.mark.spec("FLD-001")
async def test_the_provider_that_takes_over_never_sees_them(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    environ = {
        "MY_AGENT_ROUTES": "openai:deep,openrouter:other/model",
        "OPENAI_BASE_URL": model_server.base_url,
        "OPENROUTER_BASE_URL": model_server.base_url,
        "OPENROUTER_API_KEY": "sk-or-0123456789",
    }
    async with running_crew(database, environ=environ) as crew:
        model_server.play(look(1), look(2), refuse(402, "no money"), text("Done."))
        conversation_id = await crew.open()
        events = await crew.send(conversation_id, "Go")
        assert events[-1].done.text == "Done."
        assert model_server.requests[-1].body["model"] == "other/model"
        assert THOUGHT not in model_server.requests[-1].raw.decode()
        assert THOUGHT in model_server.requests[-2].raw.decode()


@pytest.mark.spec("FLD-001", "TRN-257")
async def test_thoughts_are_neither_shown_nor_found_nor_logged(
    asked: Crew, model_server: ModelServer, capfd: pytest.CaptureFixture[str]
) -> None:
    model_server.play(look(1), turn({"reasoning": f"{THOUGHT} 2"}, {"text": "Done."}))
    conversation_id = await asked.open()
    events = await asked.send(conversation_id, "Go")
    found = await asked.stub(messages_pb2_grpc.MessagesStub).Search(
        messages_pb2.SearchMessagesRequest(q=THOUGHT)
    )
    seen = [*events, await asked.get(conversation_id), await asked.last_run(conversation_id), found]
    assert not any(THOUGHT in str(each) for each in seen)
    output = capfd.readouterr()
    assert THOUGHT not in output.out + output.err
    assert sum(event.WhichOneof("event") == "thinking" for event in events) == 2


@pytest.mark.spec("FLD-002", "TRN-131", "TRN-136")
async def test_two_calls_of_one_id_both_run_and_keep_their_results(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    environ = {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": model_server.base_url}
    async with running_crew(database, environ=environ) as crew:
        for name in ("a", "b", "c"):
            (crew.workspace / f"{name}.txt").write_text(f"this is {name}")

        def read(name: str) -> dict[str, Any]:
            arguments = {"path": f"{name}.txt"}
            return {"call": {"name": "workspace_read", "arguments": arguments, "id": "call_0"}}

        model_server.play(turn(read("a"), read("b")), text("First."), turn(read("c")), text("Second."))
        conversation_id = await crew.open()
        await crew.send(conversation_id, "Go")
        before = model_server.requests[-1].messages
        await crew.send(conversation_id, "Once more")
        sent = model_server.requests[-1].messages
        assert sent[: len(before)] == before
        wire = [made["id"] for message in sent for made in message.get("tool_calls") or ()]
        assert wire[0] == "call_0"
        assert len(set(wire)) == 3
        results = {
            message["tool_call_id"]: message["content"] for message in sent if message["role"] == "tool"
        }
        assert [
            name for each, name in zip(wire, "abc", strict=True) if f"this is {name}" in results[each]
        ] == [
            "a",
            "b",
            "c",
        ]
        stored = await crew.get(conversation_id)
        ours = [made.id for message in stored.messages for made in message.tool_calls]
        assert len(set(ours)) == 3
        assert "call_0" not in ours


@pytest.mark.spec("TRN-127", "TLS-030", "TRN-138")
async def test_a_tool_nobody_has_is_an_error_of_the_call_and_not_of_the_turn(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    environ = {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": model_server.base_url}
    async with running_crew(database, environ=environ) as crew:
        model_server.play(call("workspace_reed", {"path": "a"}), text("I misspelt it."))
        conversation_id = await crew.open()
        events = await crew.send(conversation_id, "Go")
        assert events[-1].done.text == "I misspelt it."
        answer = model_server.requests[-1].messages[-1]
        assert answer["role"] == "tool"
        assert "workspace_reed" in answer["content"]
        stored = await crew.get(conversation_id)
        assert [message.is_error for message in stored.messages if message.role == "tool"] == [True]
        assert (await crew.last_run(conversation_id)).status == "done"
