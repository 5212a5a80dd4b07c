"""The tools service as a process of its own, called directly over gRPC with nobody in front of it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from crew.v1 import toolhost_pb2 as pb
from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.common.rpc import Arrow, connect, issue
from services.common.rpc.client import DirectedChannel
from services.common.toolhost.contract import NoOpinion, Refuse, WorkspaceGrant
from tests.contract.toolhost.serving import Caller, context_of

START_SECONDS = 60


class Service:
    """The process, and the folders it was given."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace = folder / "ws"
        self.workspace.mkdir()
        issue(Arrow("orchestrator", "tools"), folder / "orchestrator", folder / "tools")
        self.address = f"unix:{folder}/tools.sock"
        self.process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        self.process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "services.tools",
            env={
                "PATH": os.environ["PATH"],
                "MY_AGENT_TOOLS_LISTEN": self.address,
                "MY_AGENT_SECRETS_DIR": str(self.folder / "tools"),
                "MY_AGENT_TOOLS_STATE_DIR": str(self.folder / "state"),
            },
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        async with DirectedChannel(self.address) as channel:
            health = health_pb2_grpc.HealthStub(channel)
            for _ in range(START_SECONDS * 10):
                try:
                    answer = await health.Check(health_pb2.HealthCheckRequest(), timeout=2)
                except grpc.aio.AioRpcError:
                    assert self.process.returncode is None, "the service ended at its start"
                    await asyncio.sleep(0.1)
                else:
                    assert answer.status == health_pb2.HealthCheckResponse.SERVING
                    return
        raise AssertionError("the service did not come up")

    async def end(self, number: signal.Signals) -> int:
        assert self.process is not None
        if self.process.returncode is None:
            os.kill(self.process.pid, number)
        return await asyncio.wait_for(self.process.wait(), 30)

    def caller(self) -> DirectedChannel:
        return connect(
            self.address, caller="orchestrator", called="tools", secrets_dir=self.folder / "orchestrator"
        )

    def grant(self, **fields: Any) -> WorkspaceGrant:
        return WorkspaceGrant(root=str(self.workspace), **fields)


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    service = Service(tmp_path)
    await service.start()
    yield service
    await service.end(signal.SIGKILL)


async def test_describe_gives_the_catalogue_in_its_order(service: Service) -> None:
    async with service.caller() as channel:
        caller = Caller(channel)
        assistant = await caller.stub.Describe(pb.DescribeRequest(mode="assistant", locale="en"))
        work = await caller.stub.Describe(pb.DescribeRequest(mode="work", locale="vi"))
    names = [tool.name for tool in work.tools]
    assert names == [
        "workspace_list",
        "workspace_read",
        "workspace_write",
        "workspace_edit",
        "workspace_grep",
        "workspace_glob",
        "shell_run",
    ]
    assert [tool.name for tool in assistant.tools] == [*names[:3], "shell_run"]
    assert work.isolation in {"none", "os", "container"}
    assert work.isolation_note


async def test_nobody_gets_in_without_the_token_of_the_direction(service: Service) -> None:
    async with DirectedChannel(service.address, token="x" * 43) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await Caller(channel).stub.Describe(pb.DescribeRequest())
    assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.spec("PIP-127", "TLS-197", "TLS-025")
async def test_a_host_called_directly_keeps_its_walls(service: Service) -> None:
    """Acceptance cases 1, 22, 23 and 24: no orchestrator, no gate, no hooks."""
    outside = service.folder / "outside.txt"
    outside.write_text("secret")
    (service.workspace / "link").symlink_to(service.folder)
    (service.workspace / "browser" / "coach").mkdir(parents=True)
    (service.workspace / "browser" / "coach" / "Cookies").write_text("secret")
    grant = service.grant(private_paths=(str(service.workspace / "browser"),), write_paths=("data",))
    async with service.caller() as channel:
        caller = Caller(channel)
        number = 0
        for path in (
            "../outside.txt",
            "link/outside.txt",
            "/etc/passwd",
            "browser/coach/Cookies",
            "a\0b",
            "a\nb",
        ):
            for tool, arguments in (
                ("workspace_read", {"path": path}),
                ("workspace_list", {"path": path}),
                ("workspace_write", {"path": path, "content": "x", "overwrite": True}),
                ("workspace_edit", {"edits": [{"path": path, "old": "s", "new": "x"}]}),
                ("workspace_grep", {"pattern": "s", "path": path}),
            ):
                number += 1
                context = context_of(call_id=f"k{number}", workspace=grant)
                result = await caller.run(context, tool, arguments)
                assert result.is_error, (tool, path)
                assert result.refused, (tool, path)
                assert "secret" not in result.text
                if tool in {"workspace_write", "workspace_edit"}:
                    assert isinstance(await caller.judge(context, tool, arguments), Refuse)
        for path, works in (("data/a.txt", True), ("data/../a.txt", False), ("database/a.txt", False)):
            number += 1
            result = await caller.run(
                context_of(call_id=f"k{number}", workspace=grant),
                "workspace_write",
                {"path": path, "content": "x"},
            )
            assert result.is_error is not works, path
        for arguments in ({}, {"path": 5}, {"path": None}, {"path": ["a"]}):
            number += 1
            result = await caller.run(
                context_of(call_id=f"k{number}", workspace=grant), "workspace_read", arguments
            )
            assert result.is_error
            assert "path" in result.text
    assert outside.read_text() == "secret"
    assert sorted(os.listdir(service.workspace)) == ["browser", "data", "link"]


async def test_programs_that_are_handed_descriptors_all_live(service: Service) -> None:
    """Many short programs in a process full of gRPC's threads."""
    (service.workspace / "n.txt").write_text("needle\n")
    async with service.caller() as channel:
        caller = Caller(channel)
        for number in range(25):
            searched, commanded = await asyncio.gather(
                caller.run(
                    context_of(call_id=f"g{number}", workspace=service.grant()),
                    "workspace_grep",
                    {"pattern": "needle"},
                ),
                caller.run(
                    context_of(call_id=f"s{number}", workspace=service.grant()),
                    "shell_run",
                    {"command": "echo lives"},
                ),
            )
            assert "n.txt:1: needle" in searched.text
            assert "lives" in commanded.text


@pytest.mark.spec("TLS-214", "TLS-197")
async def test_write_paths_are_for_file_tools_alone(service: Service) -> None:
    async with service.caller() as channel:
        result = await Caller(channel).run(
            context_of(workspace=service.grant(write_paths=("data",))),
            "shell_run",
            {"command": "echo x > elsewhere.txt"},
        )
    assert not result.is_error
    assert (service.workspace / "elsewhere.txt").read_text() == "x\n"


@pytest.mark.spec("PIP-090")
async def test_the_same_call_twice_also_after_a_kill_has_one_effect(service: Service) -> None:
    """Acceptance case 30, and the kill in between."""
    grant = service.grant()
    edit = {"edits": [{"path": "n.txt", "old": "a", "new": "aa", "replace_all": True}]}
    (service.workspace / "n.txt").write_text("a\n")
    context = context_of(workspace=grant)
    async with service.caller() as channel:
        first = await Caller(channel).run(context, "workspace_edit", edit)
        again = await Caller(channel).run(context, "workspace_edit", edit)
    await service.end(signal.SIGKILL)
    await service.start()
    async with service.caller() as channel:
        after = await Caller(channel).run(context, "workspace_edit", edit)
    assert not first.is_error
    assert first == again == after
    assert (service.workspace / "n.txt").read_text() == "aa\n"


@pytest.mark.spec("FLD-067")
async def test_what_was_read_is_known_after_a_restart(service: Service) -> None:
    (service.workspace / "n.txt").write_text("old\n")
    async with service.caller() as channel:
        await Caller(channel).run(context_of(workspace=service.grant()), "workspace_read", {"path": "n.txt"})
    await service.end(signal.SIGKILL)
    await service.start()
    write = {"path": "n.txt", "content": "new\n"}
    async with service.caller() as channel:
        caller = Caller(channel)
        verdict = await caller.judge(
            context_of(call_id="k2", workspace=service.grant()), "workspace_write", write
        )
        assert isinstance(verdict, NoOpinion)
        assert "-old" in verdict.preview.splitlines()
        result = await caller.run(
            context_of(call_id="k2", workspace=service.grant()),
            "workspace_write",
            write,
            target_state=verdict.target_state,
        )
    assert not result.is_error


@pytest.mark.spec("PIP-035")
async def test_two_conversations_edit_one_file_and_both_changes_stay(service: Service) -> None:
    """Acceptance case 7."""
    (service.workspace / "n.txt").write_text("".join(f"<{n}>\n" for n in range(12)))
    async with service.caller() as channel:
        caller = Caller(channel)
        results = await asyncio.gather(
            *(
                caller.run(
                    context_of(call_id=f"k{n}", conversation_id=f"c{n}", workspace=service.grant()),
                    "workspace_edit",
                    {"edits": [{"path": "n.txt", "old": f"<{n}>", "new": f"[{n}]"}]},
                )
                for n in range(12)
            )
        )
    assert not any(result.is_error for result in results)
    assert (service.workspace / "n.txt").read_text() == "".join(f"[{n}]\n" for n in range(12))


@pytest.mark.spec("TLS-200", "TLS-242")
async def test_a_hostile_workspace_gets_bounded_answers(service: Service) -> None:
    ws = service.workspace
    (ws / "etc").symlink_to("/etc")
    (ws / "loop").symlink_to("loop")
    (ws / "round").symlink_to(".")
    (ws / "two\nlines").write_text("needle")
    os.mkfifo(ws / "pipe")
    with open(ws / "sparse", "wb") as file:
        file.truncate(1024**3)
    (ws / "wide.txt").write_text("needle " + "x" * 5_000_000)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("workspace_list", {}),
        ("workspace_read", {"path": "pipe"}),
        ("workspace_read", {"path": "sparse"}),
        ("workspace_read", {"path": "etc/passwd"}),
        ("workspace_read", {"path": "wide.txt"}),
        ("workspace_write", {"path": "pipe", "content": "x", "overwrite": True}),
        ("workspace_grep", {"pattern": "needle"}),
        ("workspace_grep", {"pattern": "root"}),
        ("workspace_glob", {"pattern": "**/*"}),
    ]
    async with service.caller() as channel:
        caller = Caller(channel)
        results = await asyncio.wait_for(
            asyncio.gather(
                *(
                    caller.run(context_of(call_id=f"k{n}", workspace=service.grant()), tool, arguments)
                    for n, (tool, arguments) in enumerate(calls)
                )
            ),
            60,
        )
    assert all(len(result.text) <= 8000 for result in results)
    assert [result.is_error for result in results] == [
        False,
        True,
        True,
        True,
        False,
        True,
        False,
        False,
        False,
    ]
    assert results[6].text.splitlines()[0].startswith('"two\\nlines":1: needle')
    assert results[7].absent
    assert "etc" not in results[8].text


@pytest.mark.spec("TLS-022")
async def test_stopping_ends_what_runs_and_the_process(service: Service) -> None:
    seconds = f"600.{os.getpid()}"
    async with service.caller() as channel:
        call = await Caller(channel).open(
            context_of(workspace=service.grant()), "shell_run", {"command": f"sleep {seconds}"}
        )
        reading = asyncio.create_task(Caller(channel).finish(call))
        for _ in range(START_SECONDS * 10):
            if reading.done() or _running("sleep", seconds):
                break
            await asyncio.sleep(0.1)
        assert not reading.done(), reading.result().result.text
        assert await service.end(signal.SIGTERM) == 0
        with pytest.raises((grpc.aio.AioRpcError, asyncio.CancelledError)):
            await reading
    assert not _running("sleep", seconds)


def _running(*command: str) -> bool:
    wanted = b"\0".join(word.encode() for word in command)
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0") == wanted:
                return True
        except OSError:
            continue
    return False


async def test_a_refused_start_says_why(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "services.tools",
        env={
            "PATH": os.environ["PATH"],
            "MY_AGENT_TOOLS_LISTEN": f"unix:{tmp_path}/t.sock",
            "MY_AGENT_SECRETS_DIR": str(tmp_path),
            "MY_AGENT_TOOLS_STATE_DIR": str(tmp_path),
        },
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 78
    assert b"orchestrator-to-tools" in errors
