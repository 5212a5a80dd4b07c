"""The pipeline against a real tool host in a process of its own, killed and stopped at will."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from crew.v1 import toolhost_pb2 as pb
from crew.v1 import toolhost_pb2_grpc

from services.common.rpc import DirectedChannel
from services.common.toolhost.contract import WorkspaceGrant
from services.orchestrator.calls.contract import Completed, Paused, Scope
from services.orchestrator.calls.pipeline import CallPipeline
from services.orchestrator.calls.registry import OfferedHost, ToolRegistry
from services.orchestrator.hosts import remote
from services.orchestrator.hosts.contract import Audience
from services.orchestrator.hosts.remote import RemoteToolHost
from tests.unit.orchestrator.calls.parts import Sink, agent_in, call, conversation

ROOT = Path(__file__).parents[3]
READY_SECONDS = 30


class HostProcess:
    """A host that can be killed and started again on the same socket."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = folder / "s"
        self.process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        self.socket.unlink(missing_ok=True)
        self.process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.integration.calls.host_process",
            str(self.socket),
            str(self.folder),
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'generated'}"},
        )
        assert self.process.stdout is not None
        async with asyncio.timeout(READY_SECONDS):
            line = await self.process.stdout.readline()
        assert line == b"ready\n"

    async def kill(self) -> None:
        if self.process is not None and self.process.returncode is None:
            self.process.kill()
            await self.process.wait()

    def marks(self, tool: str) -> list[str]:
        path = self.folder / tool
        return path.read_text().split() if path.exists() else []

    async def marked(self, tool: str, count: int = 1) -> None:
        async with asyncio.timeout(READY_SECONDS):
            while len(self.marks(tool)) < count:
                await asyncio.sleep(0.02)


class Crew:
    """An agent with the tools of that host."""

    def __init__(self, host: HostProcess, home: Path) -> None:
        self.process = host
        self.channel = DirectedChannel(f"unix:{host.socket}")
        self.host = RemoteToolHost("tools", self.channel)
        self.registry = ToolRegistry([OfferedHost(self.host)])
        self.agent = agent_in(home)
        self.sink = Sink()
        self.pipeline = CallPipeline(grant_for=lambda agent: WorkspaceGrant(root=str(agent.workspace)))

    async def scope(self, **fields) -> Scope:
        toolbox = await self.registry.toolbox(self.agent, "en")
        whole = {"conversation": conversation(autonomous=True), **fields}
        return Scope(agent=self.agent, toolbox=toolbox, run_id="run", source="web", locale="en", **whole)

    async def run(self, *calls, **fields):
        return await self.pipeline.run(await self.scope(**fields), calls, self.sink)


@pytest.fixture
async def crew(tmp_path: Path) -> AsyncIterator[Crew]:
    folder = tmp_path / "h"
    folder.mkdir()
    host = HostProcess(folder)
    await host.start()
    found = Crew(host, tmp_path / "home")
    yield found
    await found.channel.close()
    await host.kill()


@pytest.mark.spec("TLS-018", "TRN-139")
async def test_a_call_goes_through_and_its_progress_is_shown(crew):
    await crew.run(call("1", "look", '{"text":"“q”\\u00a01.10"}'))
    assert crew.sink.outcomes["1"].text == "“q”\u00a01.10"
    assert crew.sink.progress_texts == ["look has begun"]
    events = [kind for kind, _ in crew.sink.events]
    assert events == ["announced", "starting", "progress", "ended", "stored"]
    assert crew.host.state().status == "ready"
    assert crew.host.state().isolation == "os"


@pytest.mark.spec("TRN-191", "TLS-019", "TLS-021")
@pytest.mark.parametrize("judge", ["hang", "fail"])
async def test_a_judge_that_is_silent_or_broken_asks(crew, judge, monkeypatch):
    monkeypatch.setattr(remote, "JUDGE_SECONDS", 0.5)
    end = await crew.run(call("1", "look", f'{{"judge":"{judge}"}}'))
    assert isinstance(end, Paused)
    assert not end.ask.may_always
    assert crew.process.marks("look") == []


@pytest.mark.spec("TRN-191")
async def test_a_host_that_is_down_asks_and_a_call_it_was_approved_for_says_so(crew, monkeypatch):
    monkeypatch.setattr(remote, "CONNECT_SECONDS", 0.2)
    monkeypatch.setattr(remote, "FIRST_WAIT", 0.01)
    scope = await crew.scope()
    await crew.process.kill()
    end = await crew.pipeline.run(scope, [call("1", "look")], crew.sink)
    assert isinstance(end, Paused)
    assert crew.host.state().status == "unreachable"


@pytest.mark.spec("PIP-043", "TRN-140", "TLS-023")
async def test_a_host_killed_during_a_change_leaves_its_outcome_unknown(crew):
    running = asyncio.create_task(crew.run(call("1", "change", '{"wait":true}')))
    await crew.process.marked("change")
    await crew.process.kill()
    end = await running
    assert isinstance(end, Completed)
    outcome = crew.sink.outcomes["1"]
    assert outcome.text == (
        "Tool error: The tools service stopped during this call; it may or may not have taken effect. "
        "Check the current state before you repeat it."
    )
    assert outcome.outcome == "unknown"
    assert crew.process.marks("change") == ["1"]


@pytest.mark.spec("PIP-043", "PIP-090")
async def test_a_repeatable_call_is_made_again_when_the_host_is_back(crew):
    running = asyncio.create_task(crew.run(call("1", "look", '{"wait":true,"text":"fine"}')))
    await crew.process.marked("look")
    await crew.process.kill()
    (crew.process.folder / "go").touch()
    await crew.process.start()
    await running
    assert crew.sink.outcomes["1"].text == "fine"
    assert crew.process.marks("look") == ["1", "1"]


@pytest.mark.spec("PIP-043")
async def test_a_repeatable_call_is_given_up_when_the_host_stays_away(crew, monkeypatch):
    monkeypatch.setattr(remote, "BACK_SECONDS", 0.3)
    running = asyncio.create_task(crew.run(call("1", "look", '{"wait":true}')))
    await crew.process.marked("look")
    await crew.process.kill()
    await running
    assert "may or may not" in crew.sink.outcomes["1"].text


@pytest.mark.spec("PIP-041", "PIP-136")
async def test_a_stop_ends_the_work_at_the_host_and_keeps_what_it_captured(crew):
    turn = asyncio.create_task(crew.run(call("1", "change", '{"wait":true}'), call("2", "look")))
    await crew.process.marked("change")
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert (crew.process.folder / "change.ended").exists()
    first, second = crew.sink.stored
    assert "half of it" in first.text
    assert first.cancelled
    assert second.outcome == "not_started"
    assert crew.process.marks("look") == []


@pytest.mark.spec("PIP-042")
async def test_a_host_that_hangs_is_reported_and_the_turn_ends(crew, monkeypatch):
    monkeypatch.setattr("services.orchestrator.hosts.running.CANCEL_SECONDS", 0.3)
    turn = asyncio.create_task(crew.run(call("1", "change", '{"wait":true}')))
    await crew.process.marked("change")
    assert crew.process.process is not None
    crew.process.process.send_signal(signal.SIGSTOP)
    try:
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert crew.sink.stored[0].outcome == "unknown"
        assert crew.host.state().status == "unresponsive"
    finally:
        crew.process.process.send_signal(signal.SIGCONT)


@pytest.mark.spec("PIP-044")
async def test_a_call_past_its_deadline_is_a_result(tmp_path, monkeypatch):
    class Silent(toolhost_pb2_grpc.ToolHostServicer):
        async def Describe(self, request, context):
            spec = pb.ToolSpec(
                name="slow",
                description="",
                parameters_json='{"type":"object"}',
                deadline_seconds=1,
                kind=2,
                effect=1,
            )
            return pb.DescribeResponse(tools=[spec])

        async def Run(self, request_iterator, context):
            await asyncio.Event().wait()
            yield pb.RunOutput()

    async with served(tmp_path, Silent()) as crew:
        await crew.run(call("1", "slow"))
        assert "did not finish within 1 seconds" in crew.sink.outcomes["1"].text
        assert not crew.sink.outcomes["1"].ok


@pytest.mark.spec("TLS-062", "TLS-063", "TLS-064", "TLS-065", "TLS-066", "TLS-067", "TLS-068", "TLS-071")
@pytest.mark.parametrize(
    ("code", "effect", "attempts"),
    [
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "CHANGE", 4),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "READ", 4),
        (grpc.StatusCode.INTERNAL, "READ", 4),
        (grpc.StatusCode.UNKNOWN, "REPLACE", 4),
        (grpc.StatusCode.INTERNAL, "CHANGE", 1),
        (grpc.StatusCode.NOT_FOUND, "READ", 1),
        (grpc.StatusCode.PERMISSION_DENIED, "READ", 1),
    ],
)
async def test_what_decides_on_a_repetition_is_what_the_call_does(
    tmp_path, monkeypatch, code, effect, attempts
):
    monkeypatch.setattr(remote, "FIRST_WAIT", 0.01)
    made = []

    class Failing(toolhost_pb2_grpc.ToolHostServicer):
        async def Describe(self, request, context):
            spec = pb.ToolSpec(
                name="t", parameters_json='{"type":"object"}', kind=2, effect=f"TOOL_EFFECT_{effect}"
            )
            return pb.DescribeResponse(tools=[spec])

        async def Run(self, request_iterator, context):
            made.append(1)
            await context.abort(code, "no")
            yield pb.RunOutput()

    async with served(tmp_path, Failing()) as crew:
        await crew.run(call("1", "t"))
    assert len(made) == attempts
    assert ("4 attempts" in crew.sink.outcomes["1"].text) is (attempts == 4)
    assert crew.sink.of("starting") == ["1"]


async def test_nonsense_from_a_host_is_a_result_or_asks(tmp_path):
    class Nonsense(toolhost_pb2_grpc.ToolHostServicer):
        async def Describe(self, request, context):
            return pb.DescribeResponse(
                tools=[
                    pb.ToolSpec(name="a", parameters_json="not json"),
                    pb.ToolSpec(name="bad name!", parameters_json='{"type":"object"}'),
                    pb.ToolSpec(name="c", parameters_json='{"type":"nonsense"}'),
                    pb.ToolSpec(name="judged", parameters_json='{"type":"object"}', judges=True),
                    pb.ToolSpec(name="run", parameters_json='{"type":"object"}'),
                    pb.ToolSpec(name="silent", parameters_json='{"type":"object"}'),
                ]
            )

        async def Judge(self, request, context):
            return pb.Verdict()

        async def Run(self, request_iterator, context):
            async for message in request_iterator:
                if message.start.tool == "run":
                    yield pb.RunOutput(ask=pb.RunAsk(ask_id="1", kind="model", json="{}"))
                    yield pb.RunOutput(progress=pb.RunProgress(text="x", details_json="[broken"))
                    yield pb.RunOutput(result=pb.RunResult(details_json="[1]"))
                return

    async with served(tmp_path, Nonsense()) as crew:
        scope = await crew.scope()
        assert scope.toolbox.names == ["judged", "run", "silent"]
        assert isinstance(await crew.run(call("1", "judged")), Paused)
        for name in ("run", "silent"):
            await crew.run(call(name, name))
            assert not crew.sink.outcomes[name].ok
            assert crew.sink.outcomes[name].outcome == "unknown"


async def test_the_word_of_an_added_host_counts_only_towards_more_care(tmp_path):
    class Eager(toolhost_pb2_grpc.ToolHostServicer):
        async def Describe(self, request, context):
            spec = pb.ToolSpec(
                name="pay",
                parameters_json='{"type":"object"}',
                parallel=True,
                replay_safe=True,
                judges=True,
                effect=1,
            )
            return pb.DescribeResponse(tools=[spec])

        async def Judge(self, request, context):
            return pb.Verdict(routine=pb.Verdict.Routine(rule="mine"))

    async with served(tmp_path, Eager(), trusted=False) as crew:
        scope = await crew.scope(conversation=conversation())
        spec = scope.toolbox.specs[0]
        assert (spec.requires_approval, spec.parallel, spec.replay_safe, spec.effect) == (
            True,
            False,
            False,
            "change",
        )
        assert isinstance(await crew.pipeline.run(scope, [call("1", "pay")], crew.sink), Paused)


@pytest.mark.spec("PIP-117", "TLS-023", "TRN-346")
async def test_a_new_description_replaces_the_old_and_a_lost_host_keeps_its_last(tmp_path, monkeypatch):
    monkeypatch.setattr(remote, "_FRESH_SECONDS", 0)
    monkeypatch.setattr(remote, "DESCRIBE_SECONDS", 1)
    texts = iter(["first", "second"])

    class Changing(toolhost_pb2_grpc.ToolHostServicer):
        async def Describe(self, request, context):
            text = next(texts)
            spec = pb.ToolSpec(name="t", description=text, parameters_json='{"type":"object"}')
            return pb.DescribeResponse(tools=[spec], fingerprint=text)

    async with served(tmp_path, Changing()) as crew:
        audience = Audience("default", "en", "assistant")
        assert [spec.description for spec in await crew.host.describe(audience)] == ["first"]
        assert [spec.description for spec in await crew.host.describe(audience)] == ["second"]
        await crew.server.stop(0)
        assert [spec.description for spec in await crew.host.describe(audience)] == ["second"]
        assert crew.host.state().status == "unreachable"


class served:
    """A crew whose host is a servicer of the test, in this process."""

    def __init__(self, folder: Path, servicer, *, trusted: bool = True) -> None:
        self._folder = folder
        self._servicer = servicer
        self._trusted = trusted

    async def __aenter__(self) -> Crew:
        server = grpc.aio.server()
        toolhost_pb2_grpc.add_ToolHostServicer_to_server(self._servicer, server)
        process = HostProcess(self._folder)
        server.add_insecure_port(f"unix:{process.socket}")
        await server.start()
        self._crew = Crew(process, self._folder / "home")
        self._crew.host = RemoteToolHost("added", self._crew.channel, trusted=self._trusted)
        self._crew.registry = ToolRegistry([OfferedHost(self._crew.host)])
        self._crew.server = server
        return self._crew

    async def __aexit__(self, *_: object) -> None:
        await self._crew.channel.close()
        await self._crew.server.stop(0)
