"""Where a turn waits for a person, and what the person's word does."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from crew.v1 import approvals_pb2, turns_pb2

from tests.fixtures.crew import Crew, http_status_of, names_of, running_crew, until
from tests.fixtures.model_server import ModelServer, text, turn
from tests.fixtures.postgres import ScratchDatabase

WRITE = '/tool workspace_write {"path": "a.txt", "content": "1"}'


@pytest.mark.spec("TRN-183", "TRN-196", "TRN-056", "TRN-046", "GTW-069", "TRN-217", "TRN-276", "PIP-137")
async def test_a_call_that_changes_something_waits_for_a_person(crew: Crew) -> None:
    reply = await crew.turns.Inbound(turns_pb2.InboundRequest(text=WRITE))
    assert reply.status == "approval_required"
    assert "a.txt" in reply.text
    assert not (crew.workspace / "a.txt").exists()
    found = await crew.get(reply.conversation_id)
    assert found.pending_approval.tool == "workspace_write"
    assert found.pending_approval.may_always
    assert not found.running
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await crew.turns.Inbound(turns_pb2.InboundRequest(text="more", conversation_id=reply.conversation_id))
    assert http_status_of(refused.value) == (409, "AWAITING_APPROVAL")
    assert (await crew.last_run(reply.conversation_id)).status == "awaiting_approval"
    assert len((await crew.get(reply.conversation_id)).messages) == 2


@pytest.mark.spec("TRN-199", "TRN-200", "TRN-207", "TRN-278", "GTW-085", "GTW-077", "TRN-216", "PIP-092")
async def test_approve_runs_the_call_in_the_same_run_and_once(crew: Crew) -> None:
    conversation_id = await crew.open()
    events = await crew.send(conversation_id, WRITE)
    assert names_of(events)[-1] == "approval_required"
    paused = await crew.last_run(conversation_id)
    approval_id = events[-1].approval_required.approval.id
    events = await crew.decide(approval_id, approve=True)
    assert [e.tool_result.ok for e in events if e.HasField("tool_result")] == [True]
    assert names_of(events)[-1] == "done"
    assert (crew.workspace / "a.txt").read_text() == "1"
    run = await crew.last_run(conversation_id)
    assert (run.id, run.status, run.after_seq) == (paused.id, "done", paused.after_seq)
    assert [step.kind for step in run.steps] == ["model", "approval", "tool", "model"]
    assert run.steps[2].verdict == "approved"
    (crew.workspace / "a.txt").unlink()
    for approve in (True, False):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await crew.decide(approval_id, approve=approve)
        assert http_status_of(refused.value) == (409, "ALREADY_DECIDED")
    assert not (crew.workspace / "a.txt").exists()
    decided = (await crew.approvals.List(approvals_pb2.ListApprovalsRequest())).approvals
    assert [(one.id, one.status, one.decided_by) for one in decided] == [(approval_id, "approved", "owner")]


@pytest.mark.spec("TRN-205", "TRN-216", "GTW-088")
async def test_deny_tells_the_model_and_the_turn_goes_on(crew: Crew) -> None:
    conversation_id = await crew.open()
    await crew.send(conversation_id, WRITE)
    events = await crew.decide(await crew.pending(conversation_id), approve=False)
    assert [e.tool_result.ok for e in events if e.HasField("tool_result")] == [False]
    assert names_of(events)[-1] == "done"
    assert not (crew.workspace / "a.txt").exists()
    decided = (await crew.approvals.List(approvals_pb2.ListApprovalsRequest())).approvals
    assert decided[0].status == "denied"


@pytest.mark.spec("TRN-201", "TRN-202", "GTW-086")
async def test_always_is_for_this_conversation_alone(crew: Crew) -> None:
    conversation_id, other = await crew.open(), await crew.open()
    await crew.send(conversation_id, WRITE)
    await crew.decide(await crew.pending(conversation_id), approve=True, always=True)
    assert list((await crew.get(conversation_id)).auto_approve) == ["workspace_write"]
    again = '/tool workspace_write {"path": "b.txt", "content": "2"}'
    events = await crew.send(conversation_id, again)
    assert names_of(events)[-1] == "done"
    assert (crew.workspace / "b.txt").read_text() == "2"
    events = await crew.send(other, again.replace("b.txt", "c.txt"))
    assert names_of(events)[-1] == "approval_required"


@pytest.mark.spec("FLD-021")
async def test_always_covers_what_the_person_saw_and_no_more(crew: Crew) -> None:
    conversation_id = await crew.open()
    events = await crew.send(conversation_id, '/tool shell_run {"command": "ls -a"}')
    approval = events[-1].approval_required.approval
    assert approval.always_allows == "shell_run:ls"
    await crew.decide(approval.id, approve=True, always=True)
    assert list((await crew.get(conversation_id)).auto_approve) == ["shell_run:ls"]
    events = await crew.send(conversation_id, '/tool shell_run {"command": "ls"}')
    assert names_of(events)[-1] == "done"
    (grant,) = (await crew.get(conversation_id)).grants
    assert (grant.allows, grant.uses) == ("shell_run:ls", 1)
    events = await crew.send(conversation_id, '/tool shell_run {"command": "touch made"}')
    assert names_of(events)[-1] == "approval_required"
    assert not (crew.workspace / "made").exists()


@pytest.mark.spec("FLD-021")
async def test_a_line_of_several_commands_offers_no_always(crew: Crew) -> None:
    conversation_id = await crew.open()
    events = await crew.send(conversation_id, '/tool shell_run {"command": "ls; rm notes"}')
    approval = events[-1].approval_required.approval
    assert (approval.may_always, approval.always_allows) == (False, "")
    await crew.decide(approval.id, approve=True, always=True)
    assert not (await crew.get(conversation_id)).auto_approve


@pytest.mark.spec("GTW-086")
async def test_always_with_a_denial_allows_nothing(crew: Crew) -> None:
    conversation_id = await crew.open()
    await crew.send(conversation_id, WRITE)
    await crew.decide(await crew.pending(conversation_id), approve=False, always=True)
    assert not (await crew.get(conversation_id)).auto_approve


@pytest.mark.spec("TRN-189", "TRN-203", "TRN-204", "TLS-047", "TLS-051", "TLS-262")
async def test_a_must_ask_call_asks_an_autonomous_agent_and_offers_no_always(crew: Crew) -> None:
    conversation_id = await crew.open(autonomous=True)
    events = await crew.send(conversation_id, '/tool shell_run {"command": "sudo true"}')
    approval = events[-1].approval_required.approval
    assert "sudo " in approval.reason
    assert not approval.may_always
    await crew.decide(approval.id, approve=True, always=True)
    assert not (await crew.get(conversation_id)).auto_approve


@pytest.mark.spec("TRN-187", "TRN-188", "TLS-268")
async def test_a_command_on_both_lists_asks(database: ScratchDatabase) -> None:
    config = 'shell_allow_patterns: ["git status"]\nshell_ask_patterns: ["git status"]\n'
    async with running_crew(database, config=config) as crew:
        events = await crew.send(await crew.open(), '/tool shell_run {"command": "git status"}')
        assert names_of(events)[-1] == "approval_required"


@pytest.mark.spec("TRN-209", "TRN-210", "TRN-212", "TRN-213", "TLS-049", "GTW-090")
async def test_a_request_left_alone_expires_to_a_refusal(database: ScratchDatabase) -> None:
    async with running_crew(database, config="approval_ttl_seconds: 1\n") as crew:
        conversation_id = await crew.open()
        await crew.send(conversation_id, WRITE)
        approval_id = await crew.pending(conversation_id)

        async def over() -> bool:
            return (await crew.last_run(conversation_id)).status == "done"

        await until(over)
        assert not (crew.workspace / "a.txt").exists()
        decided = (await crew.approvals.List(approvals_pb2.ListApprovalsRequest())).approvals
        assert [(one.id, one.status) for one in decided] == [(approval_id, "expired")]
        result = (await crew.get(conversation_id)).messages[-2]
        assert result.role == "tool"
        assert result.is_error
        assert "nothing changed" in result.content.lower()
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await crew.decide(approval_id, approve=True)
        assert http_status_of(refused.value) == (409, "ALREADY_DECIDED")


@pytest.mark.spec("TRN-221", "TRN-222", "TRN-223", "TRN-224", "GTW-087")
async def test_a_question_is_answered_and_not_approved(crew: Crew) -> None:
    conversation_id = await crew.open(autonomous=True)
    asking = '/tool ask_user {"question": "Which?", "options": ["a", "b"], "default": "b"}'
    events = await crew.send(conversation_id, asking)
    approval = events[-1].approval_required.approval
    assert (approval.kind, list(approval.options), approval.summary) == ("question", ["a", "b"], "Which?")
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await crew.decide(approval.id, approve=True)
    assert http_status_of(refused.value) == (409, "IS_QUESTION")
    answering = turns_pb2.AnswerQuestionRequest(approval_id=approval.id, answer="a")
    events = await crew.read(crew.turns.Answer(answering))
    assert names_of(events)[-1] == "done"
    assert (await crew.get(conversation_id)).messages[-2].content.strip().endswith("a")
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await crew.read(crew.turns.Answer(answering))
    assert http_status_of(refused.value)[0] == 409


@pytest.mark.spec("TRN-225", "TRN-227")
async def test_an_unanswered_question_takes_its_default(database: ScratchDatabase) -> None:
    async with running_crew(database, config="approval_ttl_seconds: 1\n") as crew:
        conversation_id = await crew.open()
        await crew.send(conversation_id, '/tool ask_user {"question": "Which?", "default": "blue"}')

        async def over() -> bool:
            return (await crew.last_run(conversation_id)).status == "done"

        await until(over)
        result = (await crew.get(conversation_id)).messages[-2]
        assert "blue" in result.content
        assert not result.is_error


@pytest.mark.spec("TRN-206", "TRN-085")
async def test_a_message_right_behind_a_decision_queues(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    environ = {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": model_server.base_url}
    async with running_crew(database, environ=environ) as crew:
        gate = model_server.gate("after")
        arguments = {"path": "a.txt", "content": "1"}
        model_server.play(
            turn({"call": {"name": "workspace_write", "arguments": arguments}}),
            turn({"gate": "after"}, {"text": "Written."}),
            text("And this."),
        )
        conversation_id = await crew.open()
        await crew.send(conversation_id, "write it")
        deciding = asyncio.create_task(crew.decide(await crew.pending(conversation_id), approve=True))
        await gate.reached()
        events = await crew.send(conversation_id, "also this")
        assert names_of(events) == ["queued"]
        gate.release()
        await deciding

        async def answered() -> bool:
            return (await crew.get(conversation_id)).messages[-1].content == "And this."

        await until(answered)


@pytest.mark.spec("TRN-207", "TRN-206")
async def test_of_many_decisions_at_once_one_counts(crew: Crew) -> None:
    conversation_id = await crew.open()
    await crew.send(conversation_id, WRITE)
    approval_id = await crew.pending(conversation_id)
    outcomes = await asyncio.gather(
        *(crew.decide(approval_id, approve=n % 2 == 0) for n in range(20)), return_exceptions=True
    )
    assert len([one for one in outcomes if not isinstance(one, BaseException)]) == 1
    refusals = [http_status_of(one) for one in outcomes if isinstance(one, grpc.aio.AioRpcError)]
    assert refusals == [(409, "ALREADY_DECIDED")] * 19


@pytest.mark.spec("TRN-197", "TRN-198")
async def test_two_calls_that_ask_are_decided_one_after_the_other(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    environ = {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": model_server.base_url}
    async with running_crew(database, environ=environ) as crew:
        model_server.play(
            turn(
                {"call": {"name": "workspace_list", "arguments": {"path": "."}}},
                {"call": {"name": "workspace_write", "arguments": {"path": "a.txt", "content": "1"}}},
                {"call": {"name": "workspace_write", "arguments": {"path": "b.txt", "content": "2"}}},
            ),
            text("Done."),
        )
        conversation_id = await crew.open()
        events = await crew.send(conversation_id, "write both")
        assert [e.tool_result.name for e in events if e.HasField("tool_result")] == ["workspace_list"]
        events = await crew.decide(await crew.pending(conversation_id), approve=True)
        assert names_of(events)[-1] == "approval_required"
        assert (crew.workspace / "a.txt").exists()
        assert not (crew.workspace / "b.txt").exists()
        events = await crew.decide(await crew.pending(conversation_id), approve=False)
        assert names_of(events)[-1] == "done"
        assert not (crew.workspace / "b.txt").exists()
        roles = [message["role"] for message in model_server.requests[-1].messages]
        assert roles[-4:] == ["assistant", "tool", "tool", "tool"]


@pytest.mark.spec("PIP-112")
async def test_every_state_changing_call_has_its_reason_on_record_before_it_ran(crew: Crew) -> None:
    import psycopg

    conversation_id = await crew.open()
    await crew.send(conversation_id, WRITE)
    await crew.decide(await crew.pending(conversation_id), approve=True)
    with psycopg.connect(crew.database.url) as connection:
        rows = connection.execute(
            "select event, tool, allowed_by, ok from audit.calls where conversation_id = %s order by id",
            (conversation_id,),
        ).fetchall()
    assert rows == [
        ("allowed", "workspace_write", "approved", None),
        ("ended", "workspace_write", "approved", True),
    ]
