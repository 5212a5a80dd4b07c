"""An orchestrator dies in the middle of a turn, and the next one goes on (turns.md section 8)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import psycopg
import pytest
from crew.v1 import conversations_pb2, runs_pb2

from tests.fixtures.crew import Crew, names_of, running_crew, until
from tests.fixtures.killable import doomed, held
from tests.fixtures.model_server import ModelServer, call, text, turn
from tests.fixtures.postgres import ScratchDatabase

RESTARTED = "The server restarted while this call was running"
ALLOWED = ("audit.calls", "new.event = 'allowed'")
ENDED = ("audit.calls", "new.event = 'ended'")
WRITE = {"path": "made.txt", "content": "once\n"}


@pytest.fixture
async def asked(database: ScratchDatabase, model_server: ModelServer) -> AsyncIterator[Crew]:
    """A crew whose model is the scripted server."""
    environ = {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": model_server.base_url}
    async with running_crew(database, environ=environ) as running:
        yield running


class Sending:
    """A message whose turn is going to be cut; its stream ends with the connection."""

    def __init__(self, events: Any) -> None:
        self._task = asyncio.create_task(self._read(events))

    @staticmethod
    async def _read(events: Any) -> str:
        with contextlib.suppress(grpc.aio.AioRpcError):
            async for event in events:
                last = event
            return str(last.WhichOneof("event"))
        return "lost"

    async def lost(self) -> None:
        """Wait for the end of the stream, which told of no end of the turn."""
        assert await self._task == "lost"


async def quiet(crew: Crew, conversation_id: str) -> conversations_pb2.Conversation:
    """The conversation when nothing runs or waits in it any more."""

    async def over() -> bool:
        found = await crew.get(conversation_id)
        return not found.running and not found.queued

    await until(over)
    return await crew.get(conversation_id)


async def runs_of(crew: Crew, conversation_id: str) -> list[runs_pb2.Run]:
    """All runs of a conversation, the first one first."""
    reply = await crew.runs.List(runs_pb2.RunsRequest(conversation_id=conversation_id))
    return list(reversed(reply.runs))


def audited(crew: Crew, event: str) -> list[str]:
    """The tools of the audit rows of an event, in order."""
    with psycopg.connect(crew.database.superuser_url) as connection:
        rows = connection.execute("select tool from audit.calls where event = %s order by id", (event,))
        return [tool for (tool,) in rows]


def pids() -> list[str]:
    return [entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def command_line(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def roles(conversation: conversations_pb2.Conversation) -> list[str]:
    return [message.role for message in conversation.messages]


@pytest.mark.spec("TRN-141", "TRN-147", "TRN-155", "TRN-157", "TRN-161")
async def test_a_turn_killed_in_mid_stream_asks_again_under_a_run_of_its_own(
    asked: Crew, model_server: ModelServer
) -> None:
    conversation_id = await asked.open()
    gate = model_server.gate("stream")
    model_server.play(
        turn({"text": "Half of"}, {"gate": "stream"}, {"text": " it"}), text("The whole of it.")
    )
    async with doomed(asked) as orchestrator:
        sending = Sending(asked.sending(conversation_id, "Tell me."))
        await gate.reached()
        await orchestrator.kill()
        await sending.lost()
    await asked.start("orchestrator")
    found = await quiet(asked, conversation_id)
    assert [message.content for message in found.messages] == ["Tell me.", "The whole of it."]
    first, second = await runs_of(asked, conversation_id)
    assert (first.status, first.summary) == ("error", "interrupted")
    assert (second.status, second.source) == ("done", first.source)
    assert second.id != first.id
    requests = model_server.requests
    assert requests[1].messages == requests[0].messages


@pytest.mark.spec("TRN-149", "PIP-112")
async def test_a_change_that_had_not_begun_is_closed_with_the_note_and_not_made(
    asked: Crew, model_server: ModelServer
) -> None:
    conversation_id = await asked.open(autonomous=True)
    model_server.play(call("workspace_write", WRITE), text("I shall look first."))
    async with doomed(asked) as orchestrator, held(asked, *ALLOWED) as point:
        sending = Sending(asked.sending(conversation_id, "Write it."))
        await point.reached()
        await orchestrator.kill()
        await sending.lost()
    await asked.start("orchestrator")
    found = await quiet(asked, conversation_id)
    assert roles(found) == ["user", "assistant", "tool", "assistant"]
    assert found.messages[2].content.removeprefix("Tool error: ").startswith(RESTARTED)
    assert found.messages[2].is_error
    assert not (asked.workspace / "made.txt").exists()
    assert audited(asked, "allowed") == []
    # The model was told, and nothing but that.
    assert RESTARTED in model_server.requests[1].messages[-1]["content"]


@pytest.mark.spec("TRN-148")
async def test_a_read_without_its_result_is_made_again(asked: Crew, model_server: ModelServer) -> None:
    (asked.workspace / "note.txt").write_text("what it says\n")
    conversation_id = await asked.open()
    model_server.play(call("workspace_read", {"path": "note.txt"}), text("It says what it says."))
    async with doomed(asked) as orchestrator, held(asked, *ENDED) as point:
        sending = Sending(asked.sending(conversation_id, "Read it."))
        await point.reached()
        await orchestrator.kill()
        await sending.lost()
        await point.release()
    await asked.start("orchestrator")
    found = await quiet(asked, conversation_id)
    assert roles(found) == ["user", "assistant", "tool", "assistant"]
    assert "what it says" in found.messages[2].content
    assert not found.messages[2].is_error
    # Why a read ran is stored with its result: the one that was lost left no trace, and no effect.
    assert audited(asked, "allowed") == ["workspace_read"]
    assert audited(asked, "ended") == ["workspace_read"]


@pytest.mark.spec("TRN-138", "TRN-149")
async def test_a_change_whose_result_was_not_stored_is_not_made_again(
    asked: Crew, model_server: ModelServer
) -> None:
    conversation_id = await asked.open(autonomous=True)
    made = asked.workspace / "lines.txt"
    model_server.play(
        turn(
            {"call": {"name": "shell_run", "arguments": {"command": "echo first >> lines.txt"}}},
            {"call": {"name": "shell_run", "arguments": {"command": "echo second >> lines.txt"}}},
            {"call": {"name": "shell_run", "arguments": {"command": "echo third >> lines.txt"}}},
        ),
        text("Only the first is certain."),
    )
    second_ended = ("audit.calls", "new.event = 'ended' and new.arguments_short like '%second%'")
    async with doomed(asked) as orchestrator, held(asked, *second_ended) as point:
        sending = Sending(asked.sending(conversation_id, "Write three lines."))
        await point.reached()
        await orchestrator.kill()
        await sending.lost()
        await point.release()
    await asked.start("orchestrator")
    found = await quiet(asked, conversation_id)
    calls = [each.id for each in found.messages[1].tool_calls]
    results = found.messages[2:5]
    assert [each.tool_call_id for each in results] == calls
    assert [RESTARTED in each.content for each in results] == [False, True, True]
    assert roles(found)[5:] == ["assistant"]
    assert made.read_text() == "first\nsecond\n"


@pytest.mark.spec("TRN-149", "PIP-041", "TLS-310")
async def test_a_command_ends_with_the_orchestrator_that_ordered_it(
    asked: Crew, model_server: ModelServer
) -> None:
    conversation_id = await asked.open(autonomous=True)
    lines = asked.workspace / "lines.txt"
    # A time that no other process sleeps.
    command = "echo begun >> lines.txt; sleep 271.828; echo finished >> lines.txt"
    model_server.play(call("shell_run", {"command": command}), text("It was cut off."))
    async with doomed(asked) as orchestrator:
        sending = Sending(asked.sending(conversation_id, "Take your time."))

        async def begun() -> bool:
            return lines.exists()

        await until(begun)
        await orchestrator.kill()
        await sending.lost()
    await asked.start("orchestrator")
    found = await quiet(asked, conversation_id)
    assert RESTARTED in found.messages[2].content
    assert not [pid for pid in pids() if "271.828" in command_line(pid)]
    assert lines.read_text() == "begun\n"


@pytest.mark.spec("TRN-158", "TRN-160", "TRN-161", "TRN-200")
async def test_a_paused_turn_survives_any_number_of_restarts(asked: Crew, model_server: ModelServer) -> None:
    conversation_id = await asked.open()
    model_server.play(call("workspace_write", WRITE), text("Written."))
    async with doomed(asked) as orchestrator:
        events = await asked.send(conversation_id, "Write it.")
        assert names_of(events)[-1] == "approval_required"
        await orchestrator.kill()
    paused = events[-1].approval_required.approval
    for _ in range(2):
        async with doomed(asked) as orchestrator:
            (run,) = await runs_of(asked, conversation_id)
            assert (run.id, run.status) == (paused.run_id, "awaiting_approval")
            await orchestrator.kill()
    await asked.start("orchestrator")
    assert await asked.pending(conversation_id) == paused.id
    events = await asked.decide(paused.id, approve=True)
    assert names_of(events)[-1] == "done"
    assert (asked.workspace / "made.txt").read_text() == "once\n"
    (run,) = await runs_of(asked, conversation_id)
    assert (run.id, run.status) == (paused.run_id, "done")
    assert all(step.ms >= 0 for step in run.steps)
    assert [step.kind for step in run.steps] == ["model", "approval", "tool", "model"]


@pytest.mark.spec("TRN-215", "PIP-092")
@pytest.mark.parametrize("approve", [True, False])
async def test_a_decision_whose_turn_did_not_begin_is_kept(
    asked: Crew, model_server: ModelServer, approve: bool
) -> None:
    conversation_id = await asked.open()
    model_server.play(call("workspace_write", WRITE), text("As you say."))
    await asked.send(conversation_id, "Write it.")
    approval_id = await asked.pending(conversation_id)
    before = "new.event = 'allowed'" if approve else "new.event = 'withheld'"
    async with doomed(asked) as orchestrator, held(asked, "audit.calls", before) as point:
        deciding = asyncio.create_task(asked.decide(approval_id, approve=approve))
        await point.reached()
        await orchestrator.kill()
        with pytest.raises(grpc.aio.AioRpcError):
            await deciding
        await point.release()
    await asked.start("orchestrator")
    found = await quiet(asked, conversation_id)
    assert roles(found) == ["user", "assistant", "tool", "assistant"]
    assert RESTARTED not in found.messages[2].content
    assert found.messages[2].is_error is not approve
    assert (asked.workspace / "made.txt").exists() is approve
    assert audited(asked, "allowed") == (["workspace_write"] if approve else [])


@pytest.mark.spec("TRN-149")
async def test_an_approved_call_that_began_is_not_begun_again(asked: Crew, model_server: ModelServer) -> None:
    conversation_id = await asked.open()
    command = {"command": "echo once >> lines.txt"}
    model_server.play(call("shell_run", command), text("I do not know."))
    await asked.send(conversation_id, "Run it.")
    approval_id = await asked.pending(conversation_id)
    async with doomed(asked) as orchestrator, held(asked, *ENDED) as point:
        deciding = asyncio.create_task(asked.decide(approval_id, approve=True))
        await point.reached()
        await orchestrator.kill()
        with pytest.raises(grpc.aio.AioRpcError):
            await deciding
        await point.release()
    await asked.start("orchestrator")
    found = await quiet(asked, conversation_id)
    assert RESTARTED in found.messages[2].content
    assert (asked.workspace / "lines.txt").read_text() == "once\n"
    assert audited(asked, "allowed") == ["shell_run"]


@pytest.mark.spec("TRN-161", "TRN-082")
async def test_what_waited_for_the_turn_is_answered_after_it(asked: Crew, model_server: ModelServer) -> None:
    conversation_id = await asked.open()
    gate = model_server.gate("stream")
    model_server.play(turn({"gate": "stream"}, {"text": "never"}), text("One."), text("Two and three."))
    async with doomed(asked) as orchestrator:
        sending = Sending(asked.sending(conversation_id, "one"))
        await gate.reached()
        for words in ("two", "three"):
            assert names_of(await asked.send(conversation_id, words)) == ["queued"]
        await orchestrator.kill()
        await sending.lost()
    await asked.start("orchestrator")

    async def answered() -> bool:
        return len((await asked.get(conversation_id)).messages) == 4

    await until(answered)
    found = await quiet(asked, conversation_id)
    assert [message.content for message in found.messages] == [
        "one",
        "One.",
        "two\n\nthree",
        "Two and three.",
    ]


@pytest.mark.spec("TRN-147")
async def test_a_turn_that_a_person_stopped_is_not_gone_on_with(
    asked: Crew, model_server: ModelServer
) -> None:
    conversation_id = await asked.open(autonomous=True)
    begun = asked.workspace / "begun"
    model_server.play(call("shell_run", {"command": "touch begun; sleep 60"}), text("never asked for"))
    async with doomed(asked) as orchestrator:
        sending = Sending(asked.sending(conversation_id, "Take your time."))

        async def runs() -> bool:
            return begun.exists()

        await until(runs)
        # A stop that came by another orchestrator, and that the owner of the turn does not live to see.
        with psycopg.connect(asked.database.superuser_url, autocommit=True) as connection:
            connection.execute("update turns set stop_requested = true")
        await orchestrator.kill()
        await sending.lost()
    await asked.start("orchestrator")
    found = await quiet(asked, conversation_id)
    assert roles(found) == ["user", "assistant", "tool"]
    assert RESTARTED in found.messages[2].content
    assert len(model_server.requests) == 1
    (run,) = await runs_of(asked, conversation_id)
    assert (run.status, run.summary) == ("error", "interrupted")
