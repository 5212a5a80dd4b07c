"""A program over gRPC: the same messages, rules and refusals as over HTTP, and its own comforts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import psycopg
import pytest
from crew.v1 import approvals_pb2, approvals_pb2_grpc, crew_pb2, crew_pb2_grpc, events_pb2

from tests.fixtures.crew import Crew, http_status_of, names_of, running_crew, until
from tests.fixtures.fake_orchestrator import FakeOrchestrator
from tests.fixtures.gateway import Gateway, gateway_before
from tests.fixtures.model_server import ModelServer, turn
from tests.fixtures.postgres import ScratchDatabase

WRITE = '/tool workspace_write {"path": "a.txt", "content": "1"}'
QUESTION = '/tool ask_user {"question": "Which?", "options": ["a", "b"], "default": "b"}'
Events = list[events_pb2.TurnEvent]


class Program:
    """A client of the public gRPC API."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.crew = crew_pb2_grpc.CrewStub(channel)
        self.approvals = approvals_pb2_grpc.ApprovalsStub(channel)

    async def send(self, words: str, **fields: Any) -> Events:
        async with asyncio.timeout(60):
            return [event async for event in self.crew.Send(crew_pb2.SendRequest(text=words, **fields))]

    async def refused(self, call: Any) -> tuple[grpc.StatusCode, str]:
        async with asyncio.timeout(30):
            with pytest.raises(grpc.aio.AioRpcError) as refusal:
                await call.read()
        return refusal.value.code(), http_status_of(refusal.value)[1]


@pytest.fixture
async def program(before: Gateway) -> AsyncIterator[Program]:
    async with grpc.aio.insecure_channel(before.grpc_address) as channel:
        yield Program(channel)


@pytest.fixture
async def asked(database: ScratchDatabase, model_server: ModelServer) -> AsyncIterator[Crew]:
    environ = {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": model_server.base_url}
    async with running_crew(database, environ=environ) as running:
        yield running


@pytest.fixture
async def asking(asked: Crew) -> AsyncIterator[Program]:
    address = asked.environ["MY_AGENT_ORCHESTRATOR_LISTEN"]
    async with (
        gateway_before(address, asked.folder / "secrets", FakeOrchestrator()) as gateway,
        grpc.aio.insecure_channel(gateway.grpc_address) as channel,
    ):
        yield Program(channel)


@pytest.mark.spec("TRN-344", "TRN-034", "GTW-270", "GTW-271")
async def test_a_message_goes_through_the_same_gate_with_a_source_of_its_own(
    working: Crew, program: Program
) -> None:
    events = await program.send("hello", label="backup")
    assert names_of(events) == ["assistant_message", "done"]
    conversation_id = events[-1].conversation_id
    assert (await working.last_run(conversation_id)).source == "grpc:backup"
    # The day's conversation of the channel, as for any other sender on it.
    again = await program.send("again")
    assert again[-1].conversation_id == conversation_id
    assert (await working.last_run(conversation_id)).source == "grpc:api"
    for label in ("chat", "telegram", "web", "job", "job:x", "delegate:x", "memory:x"):
        call = program.crew.Send(crew_pb2.SendRequest(text="x", label=label))
        assert await program.refused(call) == (grpc.StatusCode.INVALID_ARGUMENT, "RESERVED_SOURCE")
    named = await program.send("same", conversation_id=conversation_id, request_id="r1")
    repeated = await program.send("same", conversation_id=conversation_id, request_id="r1")
    assert repeated[-1].run_id == named[-1].run_id
    assert [event.WhichOneof("event") for event in repeated][-1] == "done"
    call = program.crew.Send(
        crew_pb2.SendRequest(text="other", conversation_id=conversation_id, request_id="r1")
    )
    assert (await program.refused(call))[0] == grpc.StatusCode.ABORTED


@pytest.mark.spec("TRN-344", "GTW-278", "GTW-279")
async def test_refusals_are_those_of_http_as_codes_with_reasons(working: Crew, program: Program) -> None:
    conversation_id, other = await working.open(), await working.open()
    send, decide = program.crew.Send, program.crew.Decide
    for request, code, reason in [
        (crew_pb2.SendRequest(text=" "), grpc.StatusCode.INVALID_ARGUMENT, "EMPTY_MESSAGE"),
        (crew_pb2.SendRequest(text="/steer"), grpc.StatusCode.INVALID_ARGUMENT, "BARE_STEER"),
        (crew_pb2.SendRequest(text="x", agent_id="nobody"), grpc.StatusCode.NOT_FOUND, "NO_AGENT"),
        (crew_pb2.SendRequest(text="x", conversation_id="no"), grpc.StatusCode.NOT_FOUND, "NO_CONVERSATION"),
        (
            crew_pb2.SendRequest(text="x", channel="telegram:1"),
            grpc.StatusCode.INVALID_ARGUMENT,
            "BAD_CHANNEL",
        ),
        (crew_pb2.SendRequest(text="x", request_id="ü"), grpc.StatusCode.INVALID_ARGUMENT, "BAD_REQUEST_ID"),
    ]:
        assert await program.refused(send(request)) == (code, reason)
    paused = await program.send(WRITE, conversation_id=conversation_id)
    approval = paused[-1].approval_required.approval
    waits = send(crew_pb2.SendRequest(text="x", conversation_id=conversation_id))
    assert await program.refused(waits) == (grpc.StatusCode.FAILED_PRECONDITION, "AWAITING_APPROVAL")
    answer = program.crew.Answer(crew_pb2.AnswerRequest(approval_id=approval.id, answer="a"))
    assert (await program.refused(answer))[0] == grpc.StatusCode.FAILED_PRECONDITION
    events = [event async for event in decide(crew_pb2.DecideRequest(approval_id=approval.id, approve=True))]
    assert names_of(events)[-1] == "done"
    again = decide(crew_pb2.DecideRequest(approval_id=approval.id, approve=True))
    assert await program.refused(again) == (grpc.StatusCode.FAILED_PRECONDITION, "ALREADY_DECIDED")
    unknown = decide(crew_pb2.DecideRequest(approval_id=other, approve=True))
    assert await program.refused(unknown) == (grpc.StatusCode.NOT_FOUND, "NO_APPROVAL")


@pytest.mark.spec("TRN-344")
async def test_a_program_lists_decides_and_answers(working: Crew, program: Program) -> None:
    first, second = await working.open(), await working.open()
    await program.send(WRITE, conversation_id=first)
    await program.send(QUESTION, conversation_id=second)
    waiting = await program.approvals.ListWaiting(approvals_pb2.ListWaitingApprovalsRequest())
    assert {(each.conversation_id, each.kind) for each in waiting.approvals} == {
        (first, "tool"),
        (second, "question"),
    }
    by_conversation = {each.conversation_id: each.id for each in waiting.approvals}
    denied = crew_pb2.DecideRequest(approval_id=by_conversation[first], approve=False)
    assert names_of([event async for event in program.crew.Decide(denied)])[-1] == "done"
    answer = crew_pb2.AnswerRequest(approval_id=by_conversation[second], answer="a")
    assert names_of([event async for event in program.crew.Answer(answer)])[-1] == "done"
    decided = await program.approvals.List(approvals_pb2.ListApprovalsRequest())
    assert [each.status for each in decided.approvals] == ["answered", "denied"]


@pytest.mark.spec("GTW-270", "GTW-271", "TRN-344", "GTW-073")
async def test_on_a_busy_conversation_messages_queue_until_it_is_full_and_stop_hands_them_back(
    asked: Crew, asking: Program, model_server: ModelServer
) -> None:
    gate = model_server.gate("first")
    model_server.play(turn({"gate": "first"}, {"text": "never"}))
    conversation_id = await asked.open()
    running = asyncio.create_task(asking.send("go", conversation_id=conversation_id))
    await gate.reached()
    [queued] = await asking.send("/steer look", conversation_id=conversation_id)
    assert (queued.queued.kind, queued.queued.position) == ("steer", 1)
    for position in range(2, 21):
        [queued] = await asking.send(f"m{position}", conversation_id=conversation_id)
        assert (queued.queued.kind, queued.queued.position) == ("follow_up", position)
    full = asking.crew.Send(crew_pb2.SendRequest(text="one more", conversation_id=conversation_id))
    assert await asking.refused(full) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "QUEUE_FULL")
    stopped = await asking.crew.Stop(crew_pb2.StopRequest(conversation_id=conversation_id))
    assert list(stopped.cleared) == ["look", *(f"m{position}" for position in range(2, 21))]
    assert stopped.cancelled
    events = await running
    assert names_of(events)[-1] == "error"
    assert (await asked.last_run(conversation_id)).summary == "interrupted"


@pytest.mark.spec("GTW-272", "TRN-060")
async def test_watch_tells_what_was_said_so_far_then_what_follows_and_waits_when_asked(
    asked: Crew, asking: Program, model_server: ModelServer
) -> None:
    gate = model_server.gate("half")
    model_server.play(turn({"text": "one two three ", "pieces": 3}, {"gate": "half"}, {"text": "four"}))
    conversation_id = await asked.open()
    watch = asking.crew.Watch
    nothing = watch(crew_pb2.WatchRequest(conversation_id=conversation_id))
    assert [event async for event in nothing] == []
    assert await nothing.code() == grpc.StatusCode.OK

    waits = watch(crew_pb2.WatchRequest(conversation_id=conversation_id, wait=True))
    await waits.initial_metadata()
    sending = asyncio.create_task(asking.send("go", conversation_id=conversation_id))
    await gate.reached()
    late = watch(crew_pb2.WatchRequest(conversation_id=conversation_id))
    begun = aiter(late)
    assert (await anext(begun)).text_delta.text == "one two three "
    gate.release()
    for call, events in ((waits, aiter(waits)), (late, begun)):
        rest = [event async for event in events]
        assert names_of(rest) == ["assistant_message", "done"]
        assert await call.code() == grpc.StatusCode.OK
        assert "".join(event.text_delta.text for event in rest).endswith("four")
    await sending
    unknown = watch(crew_pb2.WatchRequest(conversation_id="nothing"))
    assert await asking.refused(unknown) == (grpc.StatusCode.NOT_FOUND, "NO_CONVERSATION")


@pytest.mark.spec("TRN-345", "GTW-273", "GTW-274")
async def test_a_deadline_or_a_client_that_leaves_ends_the_turn_only_when_it_said_so(
    asked: Crew, asking: Program, model_server: ModelServer
) -> None:
    gates = [model_server.gate(name) for name in ("deadline", "leaves", "stops")]
    conversation_id = await asked.open()
    for gate, name in zip(gates, ("deadline", "leaves", "stops"), strict=True):
        model_server.play(turn({"gate": name}, {"text": name}))
        request = crew_pb2.SendRequest(
            text="go", conversation_id=conversation_id, cancel_on_disconnect=name == "stops"
        )
        call = asking.crew.Send(request, timeout=2 if name == "deadline" else None)
        reading = asyncio.create_task(call.read())
        await gate.reached()
        if name == "deadline":
            with pytest.raises(grpc.aio.AioRpcError) as late:
                await reading
            assert late.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
        else:
            call.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        if name != "stops":
            assert (await asked.last_run(conversation_id)).status == "running"
            gate.release()

        async def over() -> bool:
            return (await asked.last_run(conversation_id)).status != "running"

        await until(over)
        run = await asked.last_run(conversation_id)
        expected = ("error", "interrupted") if name == "stops" else ("done", name)
        assert (run.status, run.summary) == expected


@pytest.mark.spec("GTW-280", "TRN-292")
async def test_pages_of_runs_stay_stable_while_runs_are_added(working: Crew, program: Program) -> None:
    conversation_id = await working.open()
    async with await psycopg.AsyncConnection.connect(
        working.database.owner_url, autocommit=True
    ) as connection:

        async def add(count: int, agent: str = "default", status: str = "done") -> None:
            await connection.execute(
                """
                insert into runs (id, conversation_id, agent_id, source, status, after_seq, finished_at)
                select gen_random_uuid(), %s, %s, 'chat', %s, 0, now() from generate_series(1, %s)
                """,
                (conversation_id, agent, status, count),
            )

        async def page(**fields: Any) -> crew_pb2.ListRunsReply:
            return await program.crew.ListRuns(crew_pb2.ListRunsRequest(**fields))

        await add(120)
        first = await page()
        assert len(first.runs) == 50
        await add(30, agent="other")
        # The run that the token names may be removed meanwhile.
        await connection.execute("delete from runs where id = %s", (first.runs[-1].id,))
        second = await page(page_token=first.next_page_token)
        third = await page(page_token=second.next_page_token)
        assert (len(second.runs), len(third.runs), third.next_page_token) == (50, 20, "")
        seen = [run.id for reply in (first, second, third) for run in reply.runs]
        assert len(set(seen)) == 120
        cursor = await connection.execute(
            "select id::text from runs where agent_id = 'default' order by n desc"
        )
        assert [one for one in seen if one != first.runs[-1].id] == [
            row[0] for row in await cursor.fetchall()
        ]
        assert len((await page(page_size=200)).runs) == 149
        assert len((await page(agent_id="other")).runs) == 30
        await add(2, status="error")
        assert len((await page(status="error")).runs) == 2
        assert len((await page(conversation_id=conversation_id, page_size=1)).runs) == 1
    for fields, reason in [
        ({"page_size": 201}, "BAD_LIMIT"),
        ({"page_size": -1}, "BAD_LIMIT"),
        ({"page_token": "made up"}, "BAD_PAGE_TOKEN"),
    ]:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await program.crew.ListRuns(crew_pb2.ListRunsRequest(**fields))
        assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert http_status_of(refused.value)[1] == reason
