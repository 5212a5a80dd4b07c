"""The tools service seen through the orchestrator's own client: the two ends of the contract."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from typing import Any

import pytest

from services.common.toolhost.contract import NoOpinion, Refuse, ToolResult, ToolSpec
from services.orchestrator.hosts.contract import Audience, HostRun
from services.orchestrator.hosts.remote import RemoteToolHost
from tests.contract.toolhost.serving import context_of
from tests.integration.tools.test_service import Service, service

__all__ = ["service"]


class Client:
    """Runs calls as the pipeline does."""

    def __init__(self, service: Service, host: RemoteToolHost, specs: dict[str, ToolSpec]) -> None:
        self.service = service
        self.host = host
        self.specs = specs
        self.progress: list[str] = []
        self.calls = 0

    async def run(
        self,
        tool: str,
        arguments: dict[str, Any],
        *,
        call_id: str = "",
        stop: asyncio.Event | None = None,
        target_state: str = "",
    ) -> ToolResult:
        self.calls += 1

        async def progress(text: str, details: Any = None) -> None:
            self.progress.append(text)

        context = context_of(call_id=call_id or f"k{self.calls}", workspace=self.service.grant())
        return await self.host.run(
            HostRun(
                context,
                self.specs[tool],
                arguments,
                progress,
                stop or asyncio.Event(),
                target_state=target_state,
            )
        )


@pytest.fixture
async def client(service: Service) -> AsyncIterator[Client]:
    async with service.caller() as channel:
        host = RemoteToolHost("tools", channel)
        specs = await host.describe(Audience("default", "en", "work"))
        yield Client(service, host, {spec.name: spec for spec in specs})


async def test_a_call_from_judging_to_its_result(client: Client) -> None:
    (client.service.workspace / "n.txt").write_text("one\n")
    old_shape = {"path": "n.txt", "old": "one", "new": "two"}
    arguments = await client.host.prepare("workspace_edit", old_shape)
    assert arguments == {"edits": [old_shape]}
    context = context_of(workspace=client.service.grant())
    verdict = await client.host.judge("workspace_edit", context, arguments)
    assert isinstance(verdict, NoOpinion)
    assert "+two" in verdict.preview
    result = await client.run("workspace_edit", dict(arguments), target_state=verdict.target_state)
    assert not result.is_error
    assert (client.service.workspace / "n.txt").read_text() == "two\n"
    again = await client.host.judge("workspace_edit", context, arguments)
    assert isinstance(again, Refuse)
    assert "not found" in again.text


@pytest.mark.spec("PIP-041", "PIP-136", "PIP-052")
async def test_a_stopped_command_keeps_what_it_had_written(client: Client) -> None:
    stop = asyncio.Event()
    running = asyncio.create_task(client.run("shell_run", {"command": "echo captured; sleep 600"}, stop=stop))
    while not any("captured" in text for text in client.progress) and not running.done():
        await asyncio.sleep(0.05)
    stop.set()
    result = await asyncio.wait_for(running, 30)
    assert result.is_error
    assert result.text.index("captured") < result.text.index("cancelled")


@pytest.mark.spec("PIP-043", "TLS-024")
async def test_a_killed_service_repeats_reads_and_nothing_else(client: Client) -> None:
    """Acceptance case 10, at the seam."""
    writing = asyncio.create_task(
        client.run("shell_run", {"command": "echo begun; sleep 600"}, call_id="once")
    )
    while not any("begun" in text for text in client.progress) and not writing.done():
        await asyncio.sleep(0.05)
    await client.service.end(signal.SIGKILL)
    (client.service.workspace / "r.txt").write_text("read\n")
    reading = asyncio.create_task(client.run("workspace_read", {"path": "r.txt"}))
    await client.service.start()
    lost = await asyncio.wait_for(writing, 60)
    assert lost.is_error
    assert lost.outcome == "unknown"
    assert (await asyncio.wait_for(reading, 60)).text == "read\n"
    repeated = await client.run("shell_run", {"command": "echo begun; sleep 600"}, call_id="once")
    assert (repeated.is_error, repeated.outcome) == (True, "unknown")
    assert "may or may not have taken effect" in repeated.text
