"""Runs and their steps: what is recorded of a turn, how it is listed, and what a step keeps."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import grpc
import psycopg
import pytest
from crew.v1 import runs_pb2

from services.common.toolhost.contract import Run, ToolError, ToolResult, text_result
from tests.fixtures.added_host import added_host
from tests.fixtures.crew import Crew, http_status_of, names_of, running_crew, until
from tests.fixtures.model_server import ModelServer, call, refuse, text, turn
from tests.fixtures.postgres import ScratchDatabase
from tests.unit.orchestrator.calls.parts import Scripted

ANYTHING = {"type": "object", "additionalProperties": True}


async def fail(run: Run) -> ToolResult:
    raise ToolError(run.arguments["text"])


async def say(run: Run) -> ToolResult:
    return text_result(run.arguments["text"])


async def pay(run: Run) -> ToolResult:
    return text_result("paid", cost_usd=0.03)


@pytest.fixture
async def asked(database: ScratchDatabase, model_server: ModelServer) -> AsyncIterator[Crew]:
    """A crew whose model is the scripted server and that has a host of the test's own."""
    say_tool = Scripted("say", say, parameters=ANYTHING)
    tools = [say_tool, Scripted("fail", fail, parameters=ANYTHING), Scripted("pay", pay)]
    environ = {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": model_server.base_url}
    async with (
        added_host(tools) as config,
        running_crew(database, config=config, environ=environ) as running,
    ):
        running.said = say_tool  # type: ignore[attr-defined]
        yield running


async def steps_of(crew: Crew, conversation_id: str) -> list[runs_pb2.RunStep]:
    return list((await crew.last_run(conversation_id)).steps)


@pytest.mark.spec("TRN-274", "TRN-279", "TRN-280", "GTW-093")
async def test_a_model_step_opens_with_the_request_and_says_when_the_first_chunk_came(
    asked: Crew, model_server: ModelServer
) -> None:
    thinking, answering = model_server.gate("thinking"), model_server.gate("answering")
    usage = {
        "prompt_tokens": 900,
        "completion_tokens": 60,
        "prompt_tokens_details": {"cached_tokens": 512},
        "completion_tokens_details": {"reasoning_tokens": 40},
        "cost": 0.001,
    }
    model_server.play(
        turn(
            {"gate": "thinking"},
            {"reasoning": "Hm, let me see"},
            {"delay": 0.4},
            {"gate": "answering"},
            {"text": "Forty-two."},
            usage=usage,
        )
    )
    conversation_id = await asked.open()
    running = asyncio.create_task(asked.send(conversation_id, "go"))
    await thinking.reached()
    [opened] = await steps_of(asked, conversation_id)
    assert (opened.kind, opened.route) == ("model", "openai:test")
    assert not opened.HasField("ms")
    thinking.release()
    await answering.reached()
    answering.release()
    events = await running
    assert names_of(events) == ["assistant_message", "done"]
    [step] = await steps_of(asked, conversation_id)
    assert (step.prompt_tokens, step.completion_tokens) == (900, 60)
    assert (step.cached_tokens, step.reasoning_tokens) == (512, 40)
    assert step.cost_usd == pytest.approx(0.001)
    # The first chunk was a thought; the silence behind it counts in the whole.
    assert step.ms - step.first_token_ms >= 350
    assert "let me see" not in str(await asked.get(conversation_id))


@pytest.mark.spec("TRN-281", "TRN-301", "TRN-299")
async def test_a_tool_step_keeps_a_short_map_and_the_tool_gets_every_argument_whole(
    asked: Crew, model_server: ModelServer
) -> None:
    arguments = {"text": "x" * 1000} | {f"more_{n}": n for n in range(20)}
    model_server.play(call("say", arguments), call("pay", {}), text("ok"))
    conversation_id = await asked.open()
    await asked.send(conversation_id, "go")
    [ran] = asked.said.ran  # type: ignore[attr-defined]
    assert dict(ran.arguments) == arguments
    steps = await steps_of(asked, conversation_id)
    said, paid = (step for step in steps if step.kind == "tool")
    kept = json.loads(said.arguments)
    assert list(kept)[:2] == ["text", "more_0"]
    assert kept["text"] == "x" * 160
    assert len(kept) == 13
    assert kept["…"] == "9 more arguments"
    assert (said.name, said.ok, said.output) == ("say", True, "x" * 160 + "…")
    assert said.ms >= 0
    assert not said.HasField("cost_usd")
    assert paid.cost_usd == pytest.approx(0.03)
    assert (await asked.last_run(conversation_id)).cost_usd == pytest.approx(0.033)


@pytest.mark.spec("TRN-294", "TRN-295", "TRN-296", "TRN-297", "TRN-302", "TRN-303", "GTW-093")
async def test_a_failed_step_keeps_both_ends_of_its_reason_live_and_stored_alike(
    asked: Crew, model_server: ModelServer
) -> None:
    long = "".join(f"w{n:04} \n" for n in range(100)) + "the end"
    short = "s" * 600
    model_server.play(call("fail", {"text": long}), call("fail", {"text": short}), text("ok"))
    conversation_id = await asked.open()
    frames = asked.runs.Activity(runs_pb2.ActivityRequest())
    assert (await frames.read()).WhichOneof("frame") == "snapshot"
    await asked.send(conversation_id, "go")
    live: dict[int, runs_pb2.RunStep] = {}
    async with asyncio.timeout(30):
        while not ((frame := await frames.read()).HasField("run") and frame.run.run.status == "done"):
            if frame.HasField("event"):
                live[frame.event.step.index] = frame.event.step
    frames.cancel()
    steps = [step for step in await steps_of(asked, conversation_id) if step.kind == "tool"]
    line = " ".join(long.split())
    assert steps[0].output == f"{line[:200]}…{line[-400:]}"
    assert len(steps[0].output) == 601
    assert steps[1].output == short
    assert [live[step.index].output for step in steps] == [step.output for step in steps]
    stored = [message for message in (await asked.get(conversation_id)).messages if message.role == "tool"]
    assert stored[0].content == f"Tool error: {long}"


@pytest.mark.spec("TRN-282")
async def test_a_shortened_result_says_how_and_how_long_it_was(
    asked: Crew, model_server: ModelServer
) -> None:
    rows = json.dumps([{"row": n, "text": "x" * 50} for n in range(1000)])
    model_server.play(
        call("say", {"text": "y" * 20_000}),
        call("say", {"text": rows}),
        call("say", {"text": "z"}),
        text("ok"),
    )
    conversation_id = await asked.open()
    events = await asked.send(conversation_id, "go")
    steps = [step for step in await steps_of(asked, conversation_id) if step.kind == "tool"]
    assert [(step.shortened, step.original_chars) for step in steps[:2]] == [
        ("cut", 20_000),
        ("structure", len(rows)),
    ]
    assert not steps[2].HasField("shortened")
    told = [event.tool_result for event in events if event.HasField("tool_result")]
    assert [result.shortened for result in told] == ["cut", "structure", ""]


@pytest.mark.spec("TRN-279", "TRN-231", "TRN-233")
async def test_every_kind_of_step_has_its_name(database: ScratchDatabase, model_server: ModelServer) -> None:
    environ = {"MY_AGENT_ROUTES": "openai:away,openai:test", "OPENAI_BASE_URL": model_server.base_url}
    agent = "escalation_route: openai:strong\n"
    gate = model_server.gate("first")
    async with running_crew(database, agent=agent, environ=environ) as crew:
        model_server.play(
            refuse(402),
            turn({"gate": "first"}, {"call": {"name": "progress_note", "arguments": {"text": "looking"}}}),
            refuse(402),
            call("workspace_write", {"path": "a.txt", "content": "1"}),
            refuse(402),
            refuse(402),
            text("from the strong one"),
        )
        conversation_id = await crew.open()
        running = asyncio.create_task(crew.send(conversation_id, "go"))
        await gate.reached()
        await crew.send(conversation_id, "/steer look at B")
        gate.release()
        await running
        await crew.decide(await crew.pending(conversation_id), approve=True)
        steps = await steps_of(crew, conversation_id)
    kinds = [step.kind for step in steps]
    assert set(kinds) == {"model", "tool", "approval", "note", "steer", "fallback", "escalation"}
    note = steps[kinds.index("note")]
    assert (note.text, note.HasField("ms"), note.HasField("ok")) == ("looking", False, False)


@pytest.mark.spec("TRN-293", "TRN-278")
async def test_the_step_of_a_resumed_turn_carries_name_and_arguments(crew: Crew) -> None:
    conversation_id = await crew.open()
    await crew.send(conversation_id, '/tool workspace_write {"path": "a.txt", "content": "1"}')
    # Another process goes on: nothing of the pause is in memory.
    await crew.end("orchestrator")
    await crew.start("orchestrator")
    await crew.decide(await crew.pending(conversation_id), approve=True)
    run = await crew.last_run(conversation_id)
    [tool] = [step for step in run.steps if step.kind == "tool"]
    assert (tool.name, json.loads(tool.arguments)) == (
        "workspace_write",
        {"path": "a.txt", "content": "1"},
    )
    assert run.after_seq == 0


@pytest.mark.spec("TRN-277", "TRN-322", "GTW-132")
async def test_a_summary_is_the_start_of_the_reply_or_the_reason_it_was_halted(
    asked: Crew, model_server: ModelServer
) -> None:
    model_server.play(text("word " * 100, usage={"prompt_tokens": 1, "completion_tokens": 1, "cost": 0.4}))
    conversation_id = await asked.open(cost_cap_usd=0.4)
    [done] = [event.done for event in await asked.send(conversation_id, "go") if event.HasField("done")]
    assert done.spent_usd == pytest.approx(0.4)
    run = await asked.last_run(conversation_id)
    assert run.summary == ("word " * 100)[:199] + "…"
    [halted] = [
        event.halted for event in await asked.send(conversation_id, "more") if event.HasField("halted")
    ]
    assert (halted.reason, halted.spent_usd) == ("budget", pytest.approx(0.4))
    run = await asked.last_run(conversation_id)
    assert (run.status, run.summary) == ("halted", "budget")


@pytest.mark.spec("TRN-286", "TRN-287", "GTW-137")
async def test_a_run_is_broadcast_at_the_ends_of_its_steps_and_no_sooner(
    asked: Crew, model_server: ModelServer
) -> None:
    model_server.play(
        turn(
            {"reasoning": "Hm"}, {"call": {"name": "say", "arguments": {"text": "secret word"}}, "pieces": 40}
        ),
        turn({"text": "a b c d " * 125, "pieces": 500}),
    )
    conversation_id = await asked.open()
    frames = asked.runs.Activity(runs_pb2.ActivityRequest())
    assert (await frames.read()).WhichOneof("frame") == "snapshot"
    await asked.send(conversation_id, "go")
    seen: list[Any] = []
    async with asyncio.timeout(30):
        while not (seen and seen[-1].HasField("run") and seen[-1].run.run.status == "done"):
            seen.append(await frames.read())
    frames.cancel()
    assert [frame.WhichOneof("frame") for frame in seen if not frame.HasField("conversation")] == [
        "run",
        *["event"] * 6,
        "run",
    ]
    assert [frame.event.step.kind for frame in seen if frame.HasField("event")] == [
        *["model"] * 2,
        *["tool"] * 2,
        *["model"] * 2,
    ]
    assert all("a b c d a b" not in str(frame) for frame in seen[:-1])
    async with await psycopg.AsyncConnection.connect(asked.database.url) as connection:
        cursor = await connection.execute("select count(*) from run_steps")
        assert await cursor.fetchone() == (3,)


@pytest.mark.spec("TRN-292", "GTW-091", "TRN-329")
async def test_runs_are_narrowed_before_they_are_counted(crew: Crew) -> None:
    other = await crew.open()
    await crew.send(other, "mine")
    async with await psycopg.AsyncConnection.connect(crew.database.owner_url, autocommit=True) as connection:
        # What another agent did meanwhile is many and newer.
        await connection.execute(
            """
            insert into runs (id, conversation_id, agent_id, source, status, after_seq, finished_at)
            select gen_random_uuid(), gen_random_uuid(), 'busy', 'chat', 'done', 0, now()
            from generate_series(1, 600)
            """
        )
        await connection.execute(
            """
            insert into runs (id, conversation_id, agent_id, source, status, after_seq, finished_at)
            values (gen_random_uuid(), gen_random_uuid(), 'helper', 'delegate:' || %s, 'done', 0, now())
            """,
            (other,),
        )

    async def listed(**wanted: Any) -> list[runs_pb2.Run]:
        return list((await crew.runs.List(runs_pb2.RunsRequest(**wanted))).runs)

    assert [run.conversation_id for run in await listed(agent_id="default", limit=1)] == [other]
    assert [run.agent_id for run in await listed(conversation_id=other)] == ["helper", "default"]
    assert len(await listed(limit=500)) == 500
    assert len(await listed()) == 100
    assert {run.agent_id for run in await listed(agent_id="busy", limit=3)} == {"busy"}
    assert await listed(agent_id="nobody") == []
    for limit in (0, -1, 501):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await listed(limit=limit)
        assert http_status_of(refused.value) == (422, "BAD_LIMIT")


@pytest.mark.spec("TRN-291", "GTW-092")
async def test_runs_of_one_second_are_listed_by_what_goes_on_then_end_then_age(crew: Crew) -> None:
    started = "2026-05-04 12:00:00+00"
    rows = [
        # name, start, status, end
        ("older", "2026-05-04 11:59:59+00", "running", None),
        ("early", started, "done", "2026-05-04 12:00:01.900+00"),
        ("early too", started, "done", "2026-05-04 12:00:01.100+00"),
        ("late", started, "error", "2026-05-04 12:00:09+00"),
        ("waits", started, "awaiting_approval", None),
        ("over", started, "done", "2026-05-04 12:00:05+00"),
    ]
    async with await psycopg.AsyncConnection.connect(crew.database.owner_url, autocommit=True) as connection:
        for name, begin, status, end in rows:
            await connection.execute(
                """
                insert into runs (id, conversation_id, agent_id, source, status, after_seq, summary,
                    started_at, finished_at)
                values (gen_random_uuid(), gen_random_uuid(), 'a', 'chat', %s, 0, %s, %s, %s)
                """,
                (status, name, begin, end),
            )
    reply = await crew.runs.List(runs_pb2.RunsRequest())
    assert [run.summary for run in reply.runs] == ["waits", "late", "over", "early too", "early", "older"]
    await crew.send(await crew.open(), "hello")
    [run, *_] = (await crew.runs.List(runs_pb2.RunsRequest())).runs
    assert run.started_at.endswith(".000Z")


@pytest.mark.spec("TRN-334", "TRN-276")
async def test_a_run_that_no_list_holds_is_found_by_its_id_and_goes_on_to_its_end(
    asked: Crew, model_server: ModelServer
) -> None:
    gate = model_server.gate("first")
    model_server.play(turn({"gate": "first"}, {"text": "x"}))
    conversation_id = await asked.open()
    running = asyncio.create_task(asked.send(conversation_id, "go"))
    await gate.reached()
    run_id = (await asked.last_run(conversation_id)).id

    async def status() -> str:
        return (await asked.runs.Get(runs_pb2.GetRunRequest(id=run_id))).status

    assert await status() == "running"
    gate.release()
    await running

    async def done() -> bool:
        return await status() == "done"

    await until(done)
    async with await psycopg.AsyncConnection.connect(asked.database.owner_url, autocommit=True) as connection:
        await connection.execute(
            """
            insert into runs (id, conversation_id, agent_id, source, status, after_seq, finished_at)
            select gen_random_uuid(), gen_random_uuid(), 'busy', 'chat', 'done', 0, now()
            from generate_series(1, 501)
            """
        )
    listed = (await asked.runs.List(runs_pb2.RunsRequest(limit=500))).runs
    assert run_id not in {run.id for run in listed}
    assert await status() == "done"
