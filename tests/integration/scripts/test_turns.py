"""Scripts within a turn: events, run card, money, the stored message, the budget."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from crew.v1 import conversations_pb2
from crew.v1 import script_sandbox_pb2 as pb

from tests.fixtures.crew import Crew, names_of, running_crew
from tests.fixtures.model_server import ModelServer, Rule, call, text, turn
from tests.fixtures.played_sandbox import PlayedSandbox, Script, played_sandbox


@asynccontextmanager
async def crew_with_scripts(
    database, server: ModelServer | None = None, *, agent: str = ""
) -> AsyncIterator[tuple[Crew, PlayedSandbox]]:
    with TemporaryDirectory(prefix="crew-p-") as folder:
        async with played_sandbox(Path(folder)) as (sandbox, address):
            environ = {"MY_AGENT_SCRIPT_SANDBOX_ADDRESS": address}
            if server is not None:
                environ |= {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": server.base_url}
                environ |= {"OPENAI_API_KEY": "sk-of-the-test"}
            async with running_crew(database, agent=agent, environ=environ) as crew:
                yield crew, sandbox


def script(source: str = "pass", **fields: Any):
    return call("tool_script", {"script": source}, **fields)


async def two_reads(played: Script) -> None:
    await two_reads_and(played)


async def two_reads_and(played: Script, *wrongly_called: str) -> None:
    """Two calls that run, and some with a parameter that no tool has."""
    await played.accept()
    assert (await played.call("workspace_read", path="a.txt")).call_result.ok
    assert not (await played.call("workspace_read", path="missing.txt")).call_result.ok
    for name in wrongly_called:
        assert not (await played.call(name, no_such_parameter=1)).call_result.ok
    await played.finish("one line\n")


@pytest.mark.spec(
    "SCR-001",
    "SCR-269",
    "SCR-277",
    "SCR-279",
    "SCR-282",
    "SCR-283",
    "SCR-284",
    "TRN-290",
    "TRN-305",
    "TRN-308",
)
async def test_a_scripts_calls_are_told_live_and_kept(database, model_server):
    model_server.play(script(), text("Done."))
    async with crew_with_scripts(database, model_server) as (crew, sandbox):
        sandbox.play = two_reads
        (crew.workspace / "a.txt").write_text("hello")
        conversation = await crew.open()
        events = await crew.send(conversation, "go")
        names = names_of(events)
        assert names[names.index("tool_call") :][:4] == [
            "tool_call",
            "nested_call",
            "nested_call",
            "tool_result",
        ]
        told = [event.nested_call for event in events if event.WhichOneof("event") == "nested_call"]
        call_id = next(event.tool_call.id for event in events if event.HasField("tool_call"))
        assert [each.index for each in told] == [0, 1]
        assert {each.tool_call_id for each in told} == {call_id}
        result = next(event.tool_result for event in events if event.HasField("tool_result"))
        calls = json.loads(result.calls)
        assert calls == [json.loads(each.call) for each in told]
        assert [each["ok"] for each in calls] == [True, False]
        assert result.printed_chars == 9
        assert result.received_chars > len("hello")
        run = await crew.last_run(conversation)
        step = next(step for step in run.steps if step.name == "tool_script")
        assert json.loads(step.calls) == calls
        assert (step.received_chars, step.printed_chars) == (result.received_chars, 9)
        assert not any(step.name == "workspace_read" for step in run.steps)
        stored = await crew.get(conversation)
        message = next(each for each in stored.messages if each.role == "tool")
        assert json.loads(message.calls) == calls
        # The model reads what was printed, and nothing of the calls.
        told_model = model_server.requests[1].messages[-1]
        assert told_model == {
            "role": "tool",
            "content": "one line\n",
            "tool_call_id": told_model["tool_call_id"],
        }


@pytest.mark.spec("SCR-081", "SCR-083", "PIP-112")
async def test_each_call_of_a_script_is_in_the_audit_trail(database, model_server):
    model_server.play(script(), text("Done."))

    async def play(played: Script) -> None:
        await two_reads_and(played, "workspace_list")

    async with crew_with_scripts(database, model_server) as (crew, sandbox):
        sandbox.play = play
        (crew.workspace / "a.txt").write_text("hello")
        await crew.send(await crew.open(), "go")
        rows = await fetch(crew, "select event, tool, call_id, allowed_by, ok from audit.calls order by id")
    inner = [(row["event"], row["ok"]) for row in rows if row["tool"] == "workspace_read"]
    assert inner == [("allowed", None), ("ended", True), ("allowed", None), ("ended", False)]
    assert [row["event"] for row in rows if row["tool"] == "workspace_list"] == ["withheld"]
    parent = next(row["call_id"] for row in rows if row["tool"] == "tool_script")
    ids = [row["call_id"] for row in rows if row["tool"] == "workspace_read"]
    assert ids == [f"{parent}.1"] * 2 + [f"{parent}.2"] * 2


async def fetch(crew: Crew, query: str) -> list[dict[str, Any]]:
    from services.orchestrator.store.pool import Database

    database = Database(crew.database.url, size=2)
    await database.open()
    try:
        async with database.connection() as connection:
            return await (await connection.execute(query)).fetchall()
    finally:
        await database.close()


@pytest.mark.spec("SCR-165", "SCR-268", "SCR-283", "TRN-263", "TRN-265", "TRN-290")
async def test_a_question_is_charged_once_and_at_once(database, model_server):
    asked = asyncio.Event()
    model_server.play(script(), text("**yes**"), text("Done."))

    async def play(played: Script) -> None:
        await played.accept()
        request = pb.AskModelRequest(line=1, kind=1, text="x", labels=["yes", "no"])
        assert (await played.ask("ask_model", request)).model_result.text == "yes"
        await asked.wait()
        await played.finish("yes")

    async with crew_with_scripts(database, model_server) as (crew, sandbox):
        sandbox.play = play
        conversation = await crew.open()
        events = crew.sending(conversation, "go")
        async for event in events:
            if event.WhichOneof("event") == "nested_call":
                break
        # The reply that wrote the script and the question, before the script has ended.
        assert (await crew.get(conversation)).spent_usd == pytest.approx(0.002)
        asked.set()
        async for _ in events:
            pass
        assert (await crew.get(conversation)).spent_usd == pytest.approx(0.003)
        assert (await crew.last_run(conversation)).cost_usd == pytest.approx(0.003)
        rows = await fetch(crew, "select purpose, cost_usd::float8 as cost from side_calls")
    assert [(row["purpose"], row["cost"]) for row in rows] == [("script", 0.001)]


@pytest.mark.spec("SCR-105", "SCR-108", "TRN-110", "TRN-108", "TRN-111")
async def test_a_turn_whose_scripts_used_up_its_calls_halts_without_asking_the_model(database, model_server):
    """Case A-34: one model call, two scripts, the first makes one call too many."""

    async def play(played: Script) -> None:
        await played.accept()
        for line in range(10):
            await played.call("workspace_list", line=line + 1)
        answer = await played.call("workspace_list", line=11)
        assert answer.WhichOneof("message") == "refuse"
        await played.refused()

    step = {"name": "tool_script", "arguments": {"script": "pass"}}
    model_server.play(turn({"call": {**step, "id": "one"}}, {"call": {**step, "id": "two"}}))
    async with crew_with_scripts(database, model_server, agent="max_steps: 2\n") as (crew, sandbox):
        # Two steps give twenty calls: the first ten are another script's, in the same turn.
        played = 0

        async def plays(each: Script) -> None:
            nonlocal played
            played += 1
            await (ten if played == 1 else play)(each)

        async def ten(each: Script) -> None:
            await each.accept()
            await each.batch(*[("workspace_list", {})] * 10)
            await each.finish("x")

        sandbox.play = plays
        model_server.script.turns.clear()
        calls = [{"call": {**step, "id": name}} for name in ("one", "two", "three")]
        model_server.play(turn(*calls), text("never asked"))
        conversation = await crew.open()
        events = await crew.send(conversation, "go")
        halted = events[-1].halted
        assert halted.reason == "nested_calls"
        assert halted.text == "Stopped because scripts used up this turn's calls."
        assert len(model_server.requests) == 1
        results = [event.tool_result for event in events if event.WhichOneof("event") == "tool_result"]
        assert [result.ok for result in results] == [True, False, False]
        assert "this turn has used all 20 of its nested calls" in results[1].output
        assert results[2].output.startswith("Not run: the turn used all 20 nested calls")
        # The next turn starts anew.
        sandbox.play, played = plays, 0
        model_server.play(script(), text("fine"))
        assert (await crew.send(conversation, "again"))[-1].done.text


@pytest.mark.spec("SCR-355", "SCR-357", "SCR-270")
async def test_a_failed_script_is_a_failed_call_that_opens_with_its_sentence(database, model_server):
    async def play(played: Script) -> None:
        await played.accept()
        await played.fail(1, "Error at line 1: KeyError: 'x'", "printed\n")

    model_server.play(script(), text("Sorry."))
    async with crew_with_scripts(database, model_server) as (crew, sandbox):
        sandbox.play = play
        conversation = await crew.open()
        events = await crew.send(conversation, "go")
        result = next(event.tool_result for event in events if event.HasField("tool_result"))
        assert not result.ok
        content = model_server.requests[1].messages[-1]["content"]
        assert content == "The script did not finish.\nprinted\nError at line 1: KeyError: 'x'"
        message = next(each for each in (await crew.get(conversation)).messages if each.role == "tool")
        assert message.content.splitlines()[0] == "The script did not finish."


@pytest.mark.spec("SCR-110")
async def test_an_identical_script_is_caught_like_any_repeated_call(database, model_server):
    model_server.script.default = script()
    async with crew_with_scripts(database, model_server) as (crew, _):
        events = await crew.send(await crew.open(), "go")
    assert events[-1].halted.reason == "loop"


@pytest.mark.spec("SCR-092", "SCR-086", "SCR-316")
async def test_the_person_takes_autonomy_back_while_a_script_runs(database, model_server):
    first_done, taken_back = asyncio.Event(), asyncio.Event()

    async def play(played: Script) -> None:
        await played.accept()
        assert (await played.call("workspace_write", files=[{"path": "1", "content": "x"}])).call_result.ok
        first_done.set()
        await taken_back.wait()
        answer = await played.call("workspace_write", files=[{"path": "2", "content": "x"}])
        assert answer.WhichOneof("message") == "refuse"
        await played.refused()

    model_server.play(script(), text("Stopped."))
    async with crew_with_scripts(database, model_server, agent="script_calls: gated\n") as (crew, sandbox):
        sandbox.play = play
        conversation = await crew.open(autonomous=True)
        running = asyncio.create_task(crew.send(conversation, "go"))
        async with asyncio.timeout(30):
            await first_done.wait()
        request = conversations_pb2.UpdateConversationRequest(id=conversation, autonomous=False)
        request.update_mask.paths.append("autonomous")
        await crew.conversations.Update(request)
        taken_back.set()
        events = await running
        assert (crew.workspace / "1").exists()
        assert not (crew.workspace / "2").exists()
        result = next(event.tool_result for event in events if event.HasField("tool_result"))
        calls = json.loads(result.calls)
        assert [(each["ok"], each.get("gated")) for each in calls] == [(True, True)]
        assert "Call it directly" in model_server.requests[1].messages[-1]["content"]
        assert names_of(events).count("approval_required") == 0


@pytest.mark.spec("SCR-009", "TLS-395")
async def test_the_tool_list_names_who_holds_it(database):
    from crew.v1 import tools_pb2

    async with crew_with_scripts(database) as (crew, _):
        rows = (await crew.tools.List(tools_pb2.ListToolsRequest())).tools
        found = [row for row in rows if row.name == "tool_script"]
        assert [list(row.agents) for row in found] == [["default"]]
        assert "- workspace_read(" in found[0].description
        assert [row.name for row in rows if row.with_reads] == ["tool_script"]


@pytest.mark.spec("SCR-271", "SCR-270", "TRN-294")
async def test_every_error_on_a_card_keeps_both_its_ends(database, model_server):
    """A failed call, a failed question and the failed script itself, by one rule."""
    answer = "first " + "words " * 200 + "last"

    async def play(played: Script) -> None:
        await played.accept()
        await played.call("workspace_read", path="x/" * 500 + "missing")
        question = pb.AskModelRequest(line=1, kind=1, text="x", labels=["yes", "no"])
        assert not (await played.ask("ask_model", question)).model_result.ok
        await played.fail(1, "Error at line 3: ValueError: " + "y" * 700 + " end")

    model_server.play(script(), text(answer), text("Sorry."))
    async with crew_with_scripts(database, model_server) as (crew, sandbox):
        sandbox.play = play
        conversation = await crew.open()
        await crew.send(conversation, "go")
        step = next(step for step in (await crew.last_run(conversation)).steps if step.name == "tool_script")
    read, question = json.loads(step.calls)
    for output in (question["output"], step.output):
        assert len(output) == 601
        assert output[200] == "…"
    assert question["output"].endswith("last")
    assert step.output.startswith("The script did not finish. Error at line 3")
    assert step.output.endswith(" end")
    assert not read["ok"]
    assert len(read["output"]) <= 601


@pytest.mark.spec("SCR-082", "SCR-084", "SCR-086", "SCR-090", "PIP-100")
@pytest.mark.parametrize(("verdict", "on_deny"), [("allow", "deny"), ("deny", "deny"), ("deny", "ask")])
async def test_a_second_model_judges_the_writes_of_a_script_too(database, model_server, verdict, on_deny):
    judged = json.dumps({"verdict": verdict, "reason": "because", "instead": ""})
    model_server.script.rules.append(Rule(turns=deque([text(judged)]), model="judge"))
    agent = (
        "script_calls: gated\n"
        f'review:\n  - {{tools: [workspace_write], route: "openai:judge", on_deny: {on_deny}}}\n'
    )

    async def play(played: Script) -> None:
        await played.accept()
        answer = await played.call("workspace_write", files=[{"path": "made", "content": "a secret"}])
        if answer.WhichOneof("message") == "refuse":
            await played.refused()
        else:
            await played.finish("written")

    model_server.play(script(), text("Done."))
    async with crew_with_scripts(database, model_server, agent=agent) as (crew, sandbox):
        sandbox.play = play
        events = await crew.send(await crew.open(autonomous=True), "go")
        told = next(
            message["content"]
            for request in model_server.requests
            for message in request.messages
            if message["role"] == "tool"
        )
        assert (crew.workspace / "made").exists() is (verdict == "allow")
    assert events[-1].WhichOneof("event") == "done", "nobody is asked"
    if verdict == "allow":
        assert told == "written"
    else:
        assert told.startswith("The script did not finish.\nStopped at line 1: ")
        assert "`workspace_write`" in told
        assert "a secret" not in told
        assert "because" not in told
