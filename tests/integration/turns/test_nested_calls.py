"""What a script's calls leave behind: events as they end, money at once, step and message at the end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest
from crew.v1 import events_pb2, runs_pb2

from services.common.toolhost.contract import Run, ToolResult, text_result
from services.common.toolhost.nested import NestedCall, ScriptRecord
from services.gateway.http.encoding import encode, to_json
from services.orchestrator.calls.masking import SecretMask
from services.orchestrator.context.history import chat_messages
from services.orchestrator.store import conversations, messages, runs, turns
from services.orchestrator.store.messages import NewMessage
from services.orchestrator.store.pool import Database
from services.orchestrator.store.records import StoredCall
from services.orchestrator.turns.activity import Activity
from services.orchestrator.turns.recorder import RunRecorder, run_message
from services.orchestrator.turns.sink import TurnSink
from services.orchestrator.turns.stream import TurnStream
from services.orchestrator.turns.trail import Trail
from services.orchestrator.turns.turn import Turn
from services.orchestrator.turns.views import message_view
from services.orchestrator.turns.writes import TurnWrites
from tests.fixtures.postgres import ScratchDatabase
from tests.unit.orchestrator.calls.parts import Bench, Scripted, agent_in

READ = NestedCall("workspace_read", {"path": "a.md"}, ok=True, output="# Title", ms=12)
PAID = NestedCall("llm_classify", {"text": "x"}, ok=True, output="yes", ms=300, cost_usd=0.002, metered=True)
UNPRICED = NestedCall("llm_classify", {"text": "y"}, ok=True, output="no", ms=300, metered=True)
CHILD = NestedCall(
    "delegate", {"task": "z"}, ok=True, output="done", ms=900, gated=True, child_spent_usd=0.25
)


class Stage:
    """A turn whose calls run for real, on a real database."""

    def __init__(self, store: Database, turn: Turn, script: Scripted, home: Path) -> None:
        self.store = store
        self.turn = turn
        self.bench = Bench(agent_in(home), [script])
        self.writes = TurnWrites(store, Trail(SecretMask()))

    async def run(self, *calls: StoredCall) -> None:
        sink = TurnSink(self.turn, self.writes, lambda turn, outcome: None)
        self.bench.sink = sink  # type: ignore[assignment]
        await self.bench.run(*calls)

    async def events(self) -> list[events_pb2.TurnEvent]:
        self.turn.stream.abandon()
        return [event async for event in self.turn.stream.events()]


@pytest.fixture
async def store(database: ScratchDatabase) -> AsyncIterator[Database]:
    opened = Database(database.url)
    await opened.open()
    yield opened
    await opened.close()


async def stage(store: Database, home: Path, script: Scripted, *calls: StoredCall) -> Stage:
    run_id = str(uuid4())
    async with store.transaction() as connection:
        conversation = await conversations.create(
            connection, agent_id="default", channel="web", title="", autonomous=True, cost_cap_usd=0
        )
        run = await runs.create(
            connection,
            run_id=run_id,
            conversation_id=conversation.id,
            agent_id="default",
            source="chat",
            after_seq=0,
        )
        claim = await turns.claim(connection, conversation.id, run_id, 1)
        assert claim is not None
        log = await messages.append(
            connection,
            conversation.id,
            [
                NewMessage("user", "person", "go", run_id),
                NewMessage("assistant", "agent", "", run_id, tool_calls=calls),
            ],
        )
    turn = Turn(
        claim=claim,
        conversation=conversation,
        agent=agent_in(home),
        source="chat",
        locale="en",
        stream=TurnStream(conversation.id, run_id),
        recorder=RunRecorder(run_message(run), Activity()),
        log=log,
        routes=[],
    )
    return Stage(store, turn, script, home)


def script_that(*reports: NestedCall, unreported: tuple[NestedCall, ...] = ()) -> Scripted:
    async def run(run: Run) -> ToolResult:
        for call in reports:
            await run.nested(call)
        record = ScriptRecord((*reports, *unreported), received_chars=1234, printed_chars=56)
        return text_result(
            "printed",
            script=record,
            cost_usd=sum(call.cost_usd or 0 for call in record.calls) or None,
            unknown_cost_calls=sum(call.unknown_cost_calls for call in record.calls),
        )

    return Scripted("tool_script", run)


@pytest.mark.spec("TRN-290", "TRN-306", "TRN-307", "TRN-320", "GTW-130")
async def test_each_call_of_a_script_is_told_between_call_and_result(store: Database, tmp_path: Path) -> None:
    call = StoredCall("c1", "tool_script", "{}")
    crew = await stage(store, tmp_path, script_that(READ, PAID, CHILD), call)
    await crew.run(call)
    events = await crew.events()
    assert [event.WhichOneof("event") for event in events] == [
        "tool_call",
        "nested_call",
        "nested_call",
        "nested_call",
        "tool_result",
    ]
    told = [json.loads(to_json(encode(event.nested_call))) for event in events[1:4]]
    assert [(each["tool_call_id"], each["index"]) for each in told] == [("c1", 0), ("c1", 1), ("c1", 2)]
    plain = {"name", "arguments", "ok", "output", "ms", "cost_usd", "metered"}
    assert set(told[0]["call"]) == plain
    assert told[0]["call"]["arguments"] == {"path": "a.md"}
    assert told[0]["call"]["cost_usd"] is None
    assert set(told[2]["call"]) == plain | {"gated", "child_spent_usd"}
    assert told[2]["call"]["gated"] is True
    assert told[2]["call"]["child_spent_usd"] == 0.25
    result = json.loads(to_json(encode(events[4].tool_result)))
    assert [each["name"] for each in result["calls"]] == ["workspace_read", "llm_classify", "delegate"]
    assert (result["received_chars"], result["printed_chars"]) == (1234, 56)


@pytest.mark.spec("TRN-290", "SCR-131", "SCR-132")
async def test_money_of_a_script_counts_once_and_as_soon_as_it_is_spent(
    store: Database, tmp_path: Path
) -> None:
    reported, go = asyncio.Event(), asyncio.Event()

    async def run(run: Run) -> ToolResult:
        await run.nested(PAID)
        await run.nested(UNPRICED)
        reported.set()
        await go.wait()
        # One call more was never reported, and a child spent what its own run records.
        record = ScriptRecord((PAID, UNPRICED, PAID, CHILD))
        return text_result("x", script=record, cost_usd=0.004, unknown_cost_calls=1)

    call = StoredCall("c1", "tool_script", "{}")
    crew = await stage(store, tmp_path, Scripted("tool_script", run), call)
    running = asyncio.create_task(crew.run(call))
    async with asyncio.timeout(30):
        await reported.wait()
    assert await totals(store, crew) == pytest.approx((0.002, 1, 0.002, 1))
    assert crew.turn.recorder.run.cost_usd == pytest.approx(0.002)
    go.set()
    await running
    assert await totals(store, crew) == pytest.approx((0.004, 1, 0.254, 1))
    assert crew.turn.recorder.run.cost_usd == pytest.approx(0.004)
    assert crew.turn.conversation.spent_usd == pytest.approx(0.254)


async def totals(store: Database, crew: Stage) -> tuple[float, int, float, int]:
    async with store.connection() as connection:
        run = await runs.get(connection, crew.turn.run_id)
        conversation = await conversations.get(connection, crew.turn.conversation_id)
    assert run is not None
    assert conversation is not None
    return (run.cost_usd, run.unknown_cost_calls, conversation.spent_usd, conversation.unknown_cost_calls)


@pytest.mark.spec("TRN-305", "TRN-308")
async def test_a_script_keeps_its_calls_and_another_tool_has_no_such_keys(
    store: Database, tmp_path: Path
) -> None:
    script, plain = StoredCall("c1", "tool_script", "{}"), StoredCall("c2", "ask_nothing", "{}")
    crew = await stage(store, tmp_path, script_that(READ), script, plain)
    crew.bench.tools = [*crew.bench.tools, Scripted("ask_nothing")]
    await crew.run(script, plain)
    events = [event.tool_result for event in await crew.events() if event.HasField("tool_result")]
    other = json.loads(to_json(encode(events[1])))
    assert (other["calls"], other["received_chars"], other["printed_chars"]) == ([], None, None)

    async with store.connection() as connection:
        stored = (await runs.steps(connection, [crew.turn.run_id]))[crew.turn.run_id]
        run = await runs.get(connection, crew.turn.run_id)
        log = await messages.log(connection, crew.turn.conversation_id)
    assert run is not None
    message: runs_pb2.Run = run_message(run, stored)
    of_script, of_plain = (json.loads(to_json(encode(step))) for step in message.steps)
    assert of_script["calls"] == [READ.fields()]
    assert (of_script["received_chars"], of_script["printed_chars"]) == (1234, 56)
    assert not {"calls", "received_chars", "printed_chars"} & set(of_plain)

    of_script, of_plain = log[2], log[3]
    assert json.loads(of_script.context or "") == {
        "calls": [READ.fields()],
        "received_chars": 1234,
        "printed_chars": 56,
    }
    assert of_plain.context is None
    assert json.loads(to_json(encode(message_view(of_script))))["calls"] == [READ.fields()]
    assert message_view(of_script).received_chars == 1234
    assert json.loads(to_json(encode(message_view(of_plain))))["calls"] == []
    sent = chat_messages(log, "en")
    assert all("workspace_read" not in f"{each.content}{each.tool_calls}" for each in sent[2:])


async def test_secrets_are_covered_in_the_calls_of_a_script(store: Database, tmp_path: Path) -> None:
    leaky = NestedCall("shell", {"command": "echo hunter22"}, ok=True, output="hunter22", ms=1)
    call = StoredCall("c1", "tool_script", "{}")
    crew = await stage(store, tmp_path, script_that(leaky), call)
    crew.bench.mask = SecretMask(["hunter22"])
    await crew.run(call)
    assert all("hunter22" not in str(event) for event in await crew.events())
    async with store.connection() as connection:
        log = await messages.log(connection, crew.turn.conversation_id)
        steps = await runs.steps(connection, [crew.turn.run_id])
    assert "hunter22" not in f"{log[-1].context}{steps}"
