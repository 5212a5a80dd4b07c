"""The sandbox, or the process of one script, is killed in the middle of a script (SCR-255, SCR-256)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import grpc
import pytest
from crew.v1 import script_sandbox_pb2 as pb
from crew.v1 import script_sandbox_pb2_grpc, turns_pb2

from services.common.rpc import connect
from tests.fixtures.crew import Crew, running_crew, until
from tests.fixtures.model_server import ModelServer, call, text
from tests.fixtures.native_crew import REPOSITORY

OPENING = "The script did not finish."


@asynccontextmanager
async def sandbox_of_its_own(crew: Crew) -> AsyncIterator[Process]:
    """The crew's script sandbox as a process that can be killed."""
    environ = {**crew.environ, "MY_AGENT_SECRETS_DIR": str(crew.folder / "secrets" / "script_sandbox")}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "services.script_sandbox",
        cwd=REPOSITORY,
        env=environ,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
    )
    address = crew.environ["MY_AGENT_SCRIPT_SANDBOX_ADDRESS"]
    secrets = crew.folder / "secrets" / "orchestrator"

    async def answers() -> bool:
        async with connect(
            address, caller="orchestrator", called="script_sandbox", secrets_dir=secrets
        ) as channel:
            try:
                await script_sandbox_pb2_grpc.ScriptSandboxStub(channel).Describe(
                    pb.DescribeSandboxRequest(), timeout=5
                )
            except grpc.aio.AioRpcError:
                return False
        return True

    try:
        await until(answers, seconds=60)
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@asynccontextmanager
async def crew_and_sandbox(database, server: ModelServer) -> AsyncIterator[tuple[Crew, Process]]:
    environ = {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": server.base_url}
    async with running_crew(database, environ=environ, scripts=True) as crew:
        await crew.end("script_sandbox")
        async with sandbox_of_its_own(crew) as process:
            yield crew, process


def children_of(pid: int) -> list[int]:
    """Every living descendant of a process."""
    found: list[int] = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[1]) == pid and fields[0] != "Z":
                child = int(stat.parent.name)
                found += [child, *children_of(child)]
    return found


SPINS = (
    "tools.workspace_list()\nprint('shown')\nn = 0\nwhile n < 1900000:\n    n += 1\ntools.workspace_list()"
)


async def after_the_first_call(crew: Crew, server: ModelServer, script: str, kill) -> list:
    """The events of a turn in whose script `kill` is called once its first call is told."""
    server.play(call("tool_script", {"script": script}), text("I will look."))
    events = []
    async with asyncio.timeout(90):
        async for event in crew.sending(await crew.open(), "go"):
            events.append(event)
            if event.WhichOneof("event") == "nested_call" and kill is not None:
                kill()
                kill = None
    return events


@pytest.mark.spec("SCR-256", "SCR-353", "SCR-354", "SCR-357")
@pytest.mark.parametrize("victim", ["service", "worker"])
async def test_a_killed_script_says_so_and_its_calls_stay(database, model_server, victim):
    async with crew_and_sandbox(database, model_server) as (crew, process):

        def kill() -> None:
            if victim == "service":
                process.kill()
                return
            for pid in children_of(process.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

        events = await after_the_first_call(crew, model_server, SPINS, kill)
        result = next(event.tool_result for event in events if event.WhichOneof("event") == "tool_result")
        told = model_server.requests[-1].messages[-1]["content"]
    assert not result.ok
    assert told.splitlines()[0] == OPENING
    assert "shown" not in told
    assert [each["name"] for each in json.loads(result.calls)][:1] == ["workspace_list"]
    assert events[-1].done.text == "I will look."


@pytest.mark.spec("SCR-353")
async def test_without_the_service_a_script_says_that_nothing_ran(database, model_server):
    environ = {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": model_server.base_url}
    async with running_crew(database, environ=environ, scripts=True) as crew:
        await crew.end("script_sandbox")
        model_server.play(call("tool_script", {"script": "print(1)"}), text("It is away."))
        await crew.send(await crew.open(), "go")
        told = model_server.requests[-1].messages[-1]["content"]
        assert told.splitlines()[0] == OPENING
        assert "Nothing ran" in told
        # And when it is back, scripts run.
        await crew.start("script_sandbox")

        async def back() -> bool:
            model_server.play(call("tool_script", {"script": "print(1)"}), text("Fine."))
            await crew.send(await crew.open(), "go")
            return bool(model_server.requests[-1].messages[-1]["content"] == "1\n")

        await until(back)


@pytest.mark.spec("SCR-255")
async def test_no_script_outlives_its_turn(database, model_server):
    async with crew_and_sandbox(database, model_server) as (crew, process):
        script = "tools.workspace_list()\nx = 0\nfor n in range(1900000):\n    x += n\nprint(x)"
        model_server.play(call("tool_script", {"script": script}), text("Never."))
        conversation_id = await crew.open()
        before = set(children_of(process.pid))
        async for event in crew.sending(conversation_id, "go"):
            if event.WhichOneof("event") == "nested_call":
                await crew.turns.Stop(turns_pb2.StopTurnRequest(conversation_id=conversation_id))
        found = await crew.get(conversation_id)
        assert not found.running

        async def gone() -> bool:
            # The workers that stood ready are there, or their successors: none runs a script.
            busy = await describe(crew)
            return busy.running == 0

        await until(gone)
        assert len(children_of(process.pid)) <= len(before) + 2


async def describe(crew: Crew) -> pb.SandboxDescription:
    async with connect(
        crew.environ["MY_AGENT_SCRIPT_SANDBOX_ADDRESS"],
        caller="orchestrator",
        called="script_sandbox",
        secrets_dir=crew.folder / "secrets" / "orchestrator",
    ) as channel:
        answer: pb.SandboxDescription = await script_sandbox_pb2_grpc.ScriptSandboxStub(channel).Describe(
            pb.DescribeSandboxRequest()
        )
        return answer


async def test_twenty_scripts_at_once_all_end_well(database, model_server):
    environ = {"MY_AGENT_ROUTES": "fake:echo"}
    async with running_crew(database, environ=environ, scripts=True) as crew:
        (crew.workspace / "a.txt").write_text("hello")
        source = (
            "rows = tools.batch([{'tool': 'workspace_read', 'args': {'path': 'a.txt'}}] * 5)\n"
            "print(len([row for row in rows if row['ok']]), sum([i for i in range(20000)]))"
        )

        async def one(n: int) -> str:
            conversation_id = await crew.open()
            line = json.dumps({"script": f"{source}\nprint({n})"})
            await crew.send(conversation_id, f"/tool tool_script {line}")
            messages = (await crew.get(conversation_id)).messages
            return next(message.content for message in messages if message.role == "tool")

        results = await asyncio.gather(*(one(n) for n in range(20)))
    assert results == [f"5 199990000\n{n}\n" for n in range(20)]
