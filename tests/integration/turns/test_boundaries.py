"""The orchestrator dies between any two statements that move waiting messages into the log (TRN-080)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import grpc
import pytest
from crew.v1 import conversations_pb2

from tests.chaos.model import fault_of
from tests.fixtures.crew import Crew, names_of, running_crew, until
from tests.fixtures.killable import doomed
from tests.fixtures.model_server import ModelServer, Turn, turn
from tests.fixtures.postgres import ScratchDatabase

# More than any move has, so that a move which grew is cut at each of its statements too.
MOST = 14
SENT = ("one", "two")


@pytest.fixture
async def asked(database: ScratchDatabase, model_server: ModelServer) -> AsyncIterator[Crew]:
    """A crew whose model is the scripted server."""
    environ = {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": model_server.base_url}
    async with running_crew(database, environ=environ) as running:
        yield running


async def cut_at(
    asked: Crew, model_server: ModelServer, number: int, first: Turn, prefix: str
) -> tuple[bool, conversations_pb2.Conversation]:
    """Whether the orchestrator died at the boundary, and the conversation when the next one is done."""
    gate = model_server.gate(f"first {number}")
    model_server.play(first)
    async with doomed(asked, "tests.fixtures.boundary", str(number)) as orchestrator:
        conversation_id = await asked.open()
        begun = asked.sending(conversation_id, "Begin.", request_id="begin")
        await gate.reached()
        for each in SENT:
            queued = await asked.send(conversation_id, f"{prefix}{each}", request_id=each)
            assert names_of(queued) == ["queued"]
        gate.release()

        async def quiet() -> bool:
            try:
                found = await asked.get(conversation_id)
            except grpc.aio.AioRpcError:
                return False
            return not found.running and not found.queued

        async def over() -> bool:
            return orchestrator.dead or await quiet()

        await until(over)
        died = orchestrator.dead
        begun.cancel()
    await asked.start("orchestrator")
    await until(quiet)
    # What was sent under a name can be sent again, and is there once (TRN-053).
    for each in SENT:
        answer = await asked.send(conversation_id, f"{prefix}{each}", request_id=each)
        assert names_of(answer)[-1] == "done"
    return died, await asked.get(conversation_id)


def persons(found: conversations_pb2.Conversation) -> list[str]:
    return [message.content for message in found.messages if message.author == "person"]


def acceptable(found: conversations_pb2.Conversation) -> None:
    """A strict provider takes the log, whatever comes next."""
    shown: list[dict[str, object]] = [{"role": "system"}]
    shown += [
        {
            "role": message.role,
            "tool_call_id": message.tool_call_id,
            "tool_calls": [{"id": each.id} for each in message.tool_calls],
        }
        for message in found.messages
    ]
    assert fault_of([*shown, {"role": "user"}]) is None
    assert [message.seq for message in found.messages] == list(range(1, len(found.messages) + 1))


@pytest.mark.timeout(300)
@pytest.mark.spec("TRN-080", "TRN-081", "TRN-066", "TRN-082", "TRN-053")
async def test_waiting_messages_become_one_turn_once_wherever_the_move_is_cut(
    asked: Crew, model_server: ModelServer
) -> None:
    cuts = 0
    for number in range(MOST):
        first = turn({"gate": f"first {number}"}, {"text": "Begun."})
        died, found = await cut_at(asked, model_server, number, first, "")
        assert persons(found) == ["Begin.", "one\n\ntwo"], f"cut at {number}"
        roles = [message.role for message in found.messages]
        assert roles == ["user", "assistant", "user", "assistant"], f"cut at {number}"
        acceptable(found)
        if not died:
            break
        cuts += 1
    # The delete, three inserts or updates, and both sides of the commit at the least.
    assert 6 <= cuts < MOST


@pytest.mark.timeout(300)
@pytest.mark.spec("TRN-080", "TRN-081", "TRN-069", "TRN-070")
async def test_steer_messages_join_the_turn_once_wherever_the_move_is_cut(
    asked: Crew, model_server: ModelServer
) -> None:
    cuts = 0
    for number in range(MOST):
        listing = {"call": {"name": "workspace_list", "arguments": {"path": "."}}}
        first = turn({"gate": f"first {number}"}, listing)
        died, found = await cut_at(asked, model_server, number, first, "/steer ")
        assert persons(found) == ["Begin.", "one\n\ntwo"], f"cut at {number}"
        roles = [message.role for message in found.messages]
        assert roles == ["user", "assistant", "tool", "user", "assistant"], f"cut at {number}"
        acceptable(found)
        if not died:
            break
        cuts += 1
    assert 6 <= cuts < MOST
