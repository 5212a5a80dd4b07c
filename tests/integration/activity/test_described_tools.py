"""Tools of an added host: described, judged and run, and read again when the description changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from services.common.toolhost.contract import Ask, Run, ToolResult, Verdict, text_result
from tests.fixtures.added_host import added_host
from tests.fixtures.crew import names_of, running_crew, until
from tests.fixtures.model_server import ModelServer, call, text
from tests.fixtures.postgres import ScratchDatabase
from tests.unit.orchestrator.calls.parts import Scripted


async def weigh(run: Run) -> ToolResult:
    return text_result("3 kg")


async def careful() -> Verdict:
    return Ask("the scale is in use", "in_use")


class Later(Scripted):
    """A tool that its host offers from some moment on."""

    offered = False

    def offered_to(self, mode: str, settings: Mapping[str, Any]) -> bool:
        return self.offered


@pytest.mark.spec("TRN-346", "TRN-184")
async def test_a_host_is_asked_to_describe_judge_and_run_and_its_news_count_without_a_restart(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    environ = {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": model_server.base_url}
    tool = Later("weigh", weigh, judge=careful)
    async with (
        added_host([tool]) as config,
        running_crew(database, config=config, environ=environ) as crew,
    ):

        async def told() -> bool:
            await crew.send(await crew.open(), "hello")
            return "weigh" in model_server.requests[-1].tool_names

        assert not await told()
        tool.offered = True
        await until(told)
        model_server.play(call("weigh", {}), text("done"))
        conversation_id = await crew.open(autonomous=True)
        events = await crew.send(conversation_id, "weigh it")
        # The word of the host on this very call: even an autonomous agent asks.
        assert events[-1].approval_required.approval.reason == "the scale is in use"
        assert tool.ran == []
        events = await crew.decide(await crew.pending(conversation_id), approve=True)
        assert names_of(events)[-1] == "done"
        assert len(tool.ran) == 1
        results = [message.content for message in (await crew.get(conversation_id)).messages]
        assert "3 kg" in results
