"""Rules about calls, requests and questions that hold in a whole crew (turns.md 7, 9, 11 to 13)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import grpc
import psycopg
import pytest
from crew.v1 import approvals_pb2, crew_pb2, turns_pb2

from tests.fixtures.crew import Crew, http_status_of, names_of, running_crew, until
from tests.fixtures.model_server import ModelServer, call, text, turn
from tests.fixtures.postgres import ScratchDatabase


def tool(name: str, **arguments: object) -> str:
    return f"/tool {name} {json.dumps(arguments)}"


WRITE = tool("workspace_write", path="a.txt", content="x")


@asynccontextmanager
async def asked(database: ScratchDatabase, server: ModelServer, agent: str = "") -> AsyncIterator[Crew]:
    """A crew whose model is the scripted one."""
    environ = {"MY_AGENT_ROUTES": "openai:main", "OPENAI_BASE_URL": server.base_url}
    async with running_crew(database, agent=agent, environ=environ) as crew:
        yield crew


@asynccontextmanager
async def rows(database: ScratchDatabase) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    """What the services' own role can reach."""
    async with await psycopg.AsyncConnection.connect(database.url, autocommit=True) as connection:
        yield connection


async def status_of(call: Any) -> int:
    """The HTTP status that a call is refused with."""
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    return http_status_of(refused.value)[0]


@pytest.mark.spec("TRN-184")
async def test_the_verdict_is_on_the_call_and_not_on_the_tool(database: ScratchDatabase) -> None:
    agent = "shell_allow_patterns: [git status]\nshell_deny_patterns: [shutdown]\n"
    async with running_crew(database, agent=agent) as crew:
        expected = {
            "git status": ("tool_result", "routine"),
            "shutdown now": ("tool_result", "refused"),
            "sudo id": ("approval_required", "sudo"),
            "true": ("approval_required", ""),
        }
        for command, (kind, why) in expected.items():
            conversation_id = await crew.open()
            events = await crew.send(conversation_id, tool("shell_run", command=command))
            assert kind in names_of(events), command
            if kind == "approval_required":
                reason = events[-1].approval_required.approval.reason
                assert bool(reason) == bool(why), command
                assert why in reason
            else:
                (step,) = [s for s in (await crew.last_run(conversation_id)).steps if s.kind == "tool"]
                assert step.verdict == why, command


@pytest.mark.spec("TRN-208")
async def test_a_request_of_nowhere_or_of_another_conversation_is_404(crew: Crew) -> None:
    conversation_id, other = await crew.open(), await crew.open()
    await crew.send(conversation_id, WRITE)
    waiting = await crew.pending(conversation_id)
    for approval_id, place in (
        (str(uuid4()), conversation_id),
        ("no id", conversation_id),
        (waiting, other),
        (waiting, str(uuid4())),
    ):
        request = turns_pb2.DecideApprovalRequest(
            approval_id=approval_id, conversation_id=place, approve=True
        )
        assert await status_of(crew.read(crew.turns.Decide(request))) == 404
        answer = turns_pb2.AnswerQuestionRequest(approval_id=approval_id, conversation_id=place, answer="yes")
        assert await status_of(crew.read(crew.turns.Answer(answer))) == 404
    assert await crew.pending(conversation_id) == waiting


@pytest.mark.spec("TRN-218", "TLS-080")
async def test_the_person_reads_every_argument_whole_and_as_it_will_run(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    async with asked(database, model_server) as crew:
        content = "".join(f"line {n}\n" for n in range(5_000))
        arguments = {"path": "a.txt", "content": content, "overwrite": "true"}
        model_server.play(call("workspace_write", arguments), text("Done."))
        conversation_id = await crew.open()
        events = await crew.send(conversation_id, "go")
        card = events[-1].approval_required.approval
        # "true" was text; what is shown, and what runs, is the repaired value.
        assert json.loads(card.arguments) == {"path": "a.txt", "content": content, "overwrite": True}
        listed = (await crew.approvals.ListWaiting(approvals_pb2.ListWaitingApprovalsRequest())).approvals
        assert listed[0].arguments == card.arguments
        await crew.decide(card.id, approve=True)
        assert (crew.workspace / "a.txt").read_text() == content


@pytest.mark.spec("TRN-219", "TRN-220", "TRN-228", "TRN-229", "TRN-097", "TRN-145")
async def test_a_question_waits_alone_is_a_step_of_its_own_and_outlives_a_stop(crew: Crew) -> None:
    conversation_id = await crew.open()
    # `question` is all that is needed; without it nothing is asked.
    events = await crew.send(conversation_id, tool("ask_user", options=["a"]))
    assert "approval_required" not in names_of(events)
    events = await crew.send(conversation_id, tool("ask_user", question="Which one?", options=["a", "b"]))
    question = events[-1].approval_required.approval
    assert (question.kind, list(question.options), question.HasField("answer")) == (
        "question",
        ["a", "b"],
        False,
    )
    step = (await crew.last_run(conversation_id)).steps[-1]
    assert (step.kind, step.name, step.text) == ("approval", "ask_user", "Which one?")
    sending = crew.send(conversation_id, "something else")
    assert await status_of(sending) == 409
    stop = await crew.turns.Stop(turns_pb2.StopTurnRequest(conversation_id=conversation_id))
    assert not stop.cancelled
    assert await crew.pending(conversation_id) == question.id
    open_calls = [message for message in (await crew.get(conversation_id)).messages if message.tool_call_id]
    assert question.tool_call_id not in [message.tool_call_id for message in open_calls]
    await crew.read(crew.turns.Answer(turns_pb2.AnswerQuestionRequest(approval_id=question.id, answer="b")))
    (decided,) = (await crew.approvals.List(approvals_pb2.ListApprovalsRequest())).approvals
    assert (decided.kind, decided.answer, decided.status) == ("question", "b", "answered")


@pytest.mark.spec("TRN-142", "TRN-146")
async def test_calls_that_were_left_open_are_closed_before_a_new_message(
    crew: Crew, database: ScratchDatabase
) -> None:
    conversation_id = await crew.open()
    await crew.send(conversation_id, tool("workspace_list", path="."))
    before = [message.role for message in (await crew.get(conversation_id)).messages]
    await crew.send(conversation_id, "all is closed")
    after = [message.role for message in (await crew.get(conversation_id)).messages]
    assert after == [*before, "user", "assistant"], "nothing was added to what was complete"
    async with rows(database) as connection:
        # As a process leaves it that died before the result was stored.
        await connection.execute(
            "delete from messages where seq > (select min(seq) from messages where tool_calls is not null)"
        )
        await connection.execute("update conversations set last_seq = (select max(seq) from messages)")
    await crew.send(conversation_id, "go on")
    messages = (await crew.get(conversation_id)).messages
    place = [message.content for message in messages].index("go on")
    assert (messages[place - 1].role, messages[place - 1].is_error) == ("tool", True)
    assert "interrupted" in messages[place - 1].content


@pytest.mark.spec("TRN-159")
async def test_a_pause_with_nothing_left_to_wait_for_is_closed_at_the_start(
    crew: Crew, database: ScratchDatabase
) -> None:
    conversation_id, waiting = await crew.open(), await crew.open()
    await crew.send(conversation_id, WRITE)
    await crew.send(waiting, WRITE)
    await crew.end("orchestrator")
    async with rows(database) as connection:
        await connection.execute(
            "update approvals set status = 'denied', decided_at = now() where conversation_id = %s",
            (conversation_id,),
        )
    await crew.start("orchestrator")
    run = await crew.last_run(conversation_id)
    assert (run.status, run.summary) == ("error", "interrupted")
    assert (await crew.last_run(waiting)).status == "awaiting_approval"


@pytest.mark.spec("TRN-214")
async def test_without_schedule_nothing_expires_by_itself_and_a_late_decision_is_refused(
    database: ScratchDatabase,
) -> None:
    async with running_crew(
        database, config="approval_ttl_seconds: 1\n", environ={"MY_AGENT_SCHEDULE": "off"}
    ) as crew:
        conversation_id = await crew.open()
        await crew.send(conversation_id, WRITE)
        waiting = await crew.pending(conversation_id)
        async with rows(database) as connection:
            await connection.execute("update approvals set expires_at = now() - interval '1 hour'")
        assert (await crew.last_run(conversation_id)).status == "awaiting_approval"
        assert await status_of(crew.decide(waiting, approve=True)) == 409

        # The call counts as refused, and the turn is over instead of waiting for ever (TRN-214).
        async def over() -> bool:
            return (await crew.last_run(conversation_id)).status == "done"

        await until(over)
        assert not (crew.workspace / "a.txt").exists()
        assert (await crew.get(conversation_id)).messages[2].is_error


@pytest.mark.spec("TRN-171", "TRN-234", "TRN-118")
async def test_the_guards_note_is_stored_and_a_progress_note_stays_with_its_run(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    async with asked(database, model_server) as crew:
        same = call("workspace_list", {"path": "."})
        note = call("progress_note", {"text": "Reading the forty reports."})
        model_server.play(note, same, same, same, text("Done."))
        conversation_id = await crew.open()
        await crew.send(conversation_id, "go")
        notes = [each for each in (await crew.get(conversation_id)).messages if each.author == "system"]
        assert [each.role for each in notes] == ["user"]
        assert "workspace_list" in notes[0].content
        kinds = [step.kind for step in (await crew.last_run(conversation_id)).steps]
        assert kinds.count("note") == 1
        model_server.play(text("Hello."))
        await crew.send(await crew.open(), "another conversation")
        assert "forty reports" not in json.dumps(model_server.requests[-1].body)


@pytest.mark.spec("TRN-090")
async def test_a_stop_reaches_a_turn_of_any_channel(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    async with asked(database, model_server) as crew:
        model_server.play(turn({"text": "Begun."}, {"gate": "never"}))
        call_ = crew.automation.Send(crew_pb2.SendRequest(text="go", channel="api:relay"))
        stream = aiter(call_)
        async with asyncio.timeout(30):
            first = await anext(stream)
        stop = await crew.turns.Stop(turns_pb2.StopTurnRequest(conversation_id=first.conversation_id))
        assert stop.cancelled
        events = await crew.read(stream)
        assert events[-1].WhichOneof("event") == "error"


@pytest.mark.spec("TLS-031")
async def test_arguments_that_are_no_object_are_answered_and_not_stored(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    async with asked(database, model_server) as crew:
        broken = '{"path": "notes.txt", "content": oops}'
        model_server.play(call("workspace_write", broken), text("Done."))
        conversation_id = await crew.open()
        events = await crew.send(conversation_id, "go")
        assert "approval_required" not in names_of(events)
        result = next(event.tool_result for event in events if event.HasField("tool_result"))
        assert not result.ok
        assert str(len(broken)) in result.output
        assert str(broken.index("oops")) in result.output or "oops" in result.output
        stored = [one for each in (await crew.get(conversation_id)).messages for one in each.tool_calls]
        assert [one.arguments for one in stored] == ["{}"]


@pytest.mark.spec("TLS-045")
async def test_a_tool_that_is_allowed_still_asks(database: ScratchDatabase) -> None:
    async with running_crew(database, agent="tools: [shell_run, workspace_write]\n") as crew:
        for words in (tool("shell_run", command="touch a.txt"), WRITE):
            events = await crew.send(await crew.open(), words)
            assert events[-1].WhichOneof("event") == "approval_required"
        assert not (crew.workspace / "a.txt").exists()
