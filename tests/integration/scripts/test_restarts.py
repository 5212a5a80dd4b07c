"""The orchestrator dies in the middle of a script (script.md, section 14)."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

import grpc
import pytest
from crew.v1 import conversations_pb2, runs_pb2

from tests.fixtures.crew import Crew, running_crew, until
from tests.fixtures.killable import doomed
from tests.fixtures.model_server import text, turn
from tests.fixtures.played_sandbox import Script
from tests.integration.scripts.test_turns import crew_with_scripts, fetch, script


class Interrupted:
    """Plays a script whose first run stands still after its first call, and whose next runs finish."""

    def __init__(self) -> None:
        self.runs = 0
        self.stands = asyncio.Event()

    async def __call__(self, played: Script) -> None:
        self.runs += 1
        await played.accept()
        await played.call("workspace_list", path=".")
        if self.runs == 1:
            # The answer was given, so the call is on the card.
            self.stands.set()
            await played.receive()
        await played.finish(f"run {self.runs}")


async def cut_off(crew: Crew, conversation_id: str, played: Interrupted) -> None:
    """Kill the orchestrator while the script stands still."""
    async with doomed(crew) as orchestrator:
        events = crew.sending(conversation_id, "go")
        reading = asyncio.create_task(read(events))
        async with asyncio.timeout(60):
            await played.stands.wait()
        await orchestrator.kill()
        await reading


async def read(events: Any) -> None:
    with contextlib.suppress(grpc.aio.AioRpcError):
        async for _ in events:
            pass


async def taken_over(crew: Crew, conversation_id: str) -> tuple[conversations_pb2.Conversation, list[Any]]:
    """The conversation after the next orchestrator has ended its turn, and its runs, the first first."""
    await crew.start("orchestrator")

    async def over() -> bool:
        found = await crew.get(conversation_id)
        return not found.running and found.messages[-1].role == "assistant"

    await until(over)
    reply = await crew.runs.List(runs_pb2.RunsRequest(conversation_id=conversation_id))
    return await crew.get(conversation_id), list(reversed(reply.runs))


def calls_on_card(run: Any) -> list[str]:
    step = next(step for step in run.steps if step.name == "tool_script")
    return [call["name"] for call in json.loads(step.calls or "[]")]


@pytest.mark.spec("SCR-285", "TRN-150")
async def test_a_script_that_only_reads_runs_again_from_its_start(database, model_server):
    model_server.play(script(), text("Done."))
    async with crew_with_scripts(database, model_server) as (crew, sandbox):
        sandbox.play = played = Interrupted()
        conversation_id = await crew.open()
        await cut_off(crew, conversation_id, played)
        found, (first, second) = await taken_over(crew, conversation_id)
        result = next(message for message in found.messages if message.role == "tool")
    assert played.runs == 2
    assert (result.content, result.is_error) == ("run 2", False)
    assert calls_on_card(first) == ["workspace_list"], "what ran before is on its card"
    assert calls_on_card(second) == ["workspace_list"]


@pytest.mark.spec("SCR-286", "SCR-096", "TRN-150")
async def test_a_script_of_a_gated_agent_is_closed_and_never_runs_again(database, model_server):
    model_server.play(script(), text("I will look."))
    async with crew_with_scripts(database, model_server, agent="script_calls: gated\n") as (crew, sandbox):
        sandbox.play = played = Interrupted()
        conversation_id = await crew.open()
        await cut_off(crew, conversation_id, played)
        found, (first, _) = await taken_over(crew, conversation_id)
        result = next(message for message in found.messages if message.role == "tool")
    assert played.runs == 1
    assert result.content.startswith("The server restarted while this call was running")
    assert "check the current state before you call it again" in result.content
    assert calls_on_card(first) == ["workspace_list"]


LONG = """
print('begun')
store('seen', 1)
names = tools.workspace_list()
rows = tools.batch([{'tool': 'workspace_list'}] * 3)
print(len(rows), load('seen'))
print(llm.classify('a bill', ['yes', 'no']))
"""


@pytest.mark.spec("SCR-287", "SCR-165")
async def test_a_reading_script_goes_on_behind_its_last_answered_call(database, model_server):
    """The orchestrator dies while a model is asked; the calls before are not made again."""
    environ = {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": model_server.base_url}
    async with running_crew(database, environ=environ, scripts=True) as crew:
        conversation_id = await crew.open()
        model_server.play(script(LONG), turn({"gate": "asked"}, {"text": "yes"}))
        async with doomed(crew) as orchestrator:
            reading = asyncio.create_task(read(crew.sending(conversation_id, "go")))
            await model_server.gate("asked").reached()
            query = "select seq from script_checkpoints"

            async def kept() -> bool:
                # The store was opened, one call was made, and a batch: three answers.
                return [row["seq"] for row in await fetch(crew, query)] == [3]

            await until(kept)
            await orchestrator.kill()
            await reading
        model_server.gate("asked").release()
        model_server.script.turns.clear()
        model_server.play(text("yes"), text("Done."))
        found, (_, second) = await taken_over(crew, conversation_id)
        result = next(message for message in found.messages if message.role == "tool")
        ran = await fetch(
            crew, "select call_id from audit.calls where event = 'allowed' and tool = 'workspace_list'"
        )
        left = await fetch(crew, "select * from script_checkpoints")
        values = await fetch(crew, "select value from script_values")
    assert result.content == "begun\n3 1\nyes\n"
    assert len(ran) == len({row["call_id"] for row in ran}) == 4, "no call was made twice"
    assert calls_on_card(second) == ["workspace_list"] * 4 + ["llm.classify"]
    # The reply that wrote the script is the first run's; the question and the last reply are this one's.
    assert second.cost_usd == pytest.approx(0.002)
    assert not left
    assert [row["value"] for row in values] == ["1"]


@pytest.mark.spec("SCR-285")
async def test_a_checkpoint_that_cannot_be_used_begins_at_the_first_line(database, model_server):
    """Another engine says that it can not go on; what was counted before counts no more."""
    model_server.play(script(), text("Done."))
    async with crew_with_scripts(database, model_server) as (crew, sandbox):
        runs: list[Script] = []
        stands = asyncio.Event()

        async def play(played: Script) -> None:
            runs.append(played)
            await played.accept()
            for n in range(24):
                await played.send(checkpoint={"seq": n + 1, "state": b"paused"})
                await played.call("workspace_list")
            if len(runs) == 1:
                stands.set()
                await played.receive()
            await played.finish("whole")

        sandbox.play = play
        conversation_id = await crew.open()
        async with doomed(crew) as orchestrator:
            reading = asyncio.create_task(read(crew.sending(conversation_id, "go")))
            async with asyncio.timeout(60):
                await stands.wait()

            async def kept() -> bool:
                return bool(await fetch(crew, "select seq from script_checkpoints where seq > 0"))

            await until(kept)
            await orchestrator.kill()
            await reading
        found, (_, second) = await taken_over(crew, conversation_id)
        result = next(message for message in found.messages if message.role == "tool")
    assert [bool(each.start.resume) for each in runs] == [False, True]
    assert all(each.start.checkpoints for each in runs)
    assert (result.content, result.is_error) == ("whole", False)
    assert len(calls_on_card(second)) == 24
