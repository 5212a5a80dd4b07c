"""`tool_script` with real parts around it: pipeline, gate, database, a sandbox the test plays."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import grpc.aio
from crew.v1 import script_sandbox_pb2_grpc

from services.common.rpc import DirectedChannel
from services.common.toolhost.contract import WorkspaceGrant
from services.common.variables import Variables
from services.orchestrator.agents.profile import Agent
from services.orchestrator.calls.budget import NestedBudget
from services.orchestrator.calls.contract import CallOutcome, Completed, Scope
from services.orchestrator.calls.hooks import Hooks
from services.orchestrator.calls.pipeline import CallPipeline
from services.orchestrator.calls.registry import OfferedHost, ToolRegistry
from services.orchestrator.hosts.local import LocalToolHost
from services.orchestrator.hosts.own import AskUser, ProgressNote
from services.orchestrator.models.config import ModelsConfig
from services.orchestrator.models.contract import Route
from services.orchestrator.models.facade import Models
from services.orchestrator.money.side_calls import SideCalls
from services.orchestrator.money.treasury import Treasury
from services.orchestrator.scripts.questions import Questions
from services.orchestrator.scripts.running import Scripts
from services.orchestrator.scripts.tool_script import ToolScript
from services.orchestrator.store import conversations, runs
from services.orchestrator.store.pool import Database
from services.orchestrator.store.records import Conversation, StoredCall
from tests.fixtures.played_sandbox import Play, PlayedSandbox, played_sandbox
from tests.fixtures.postgres import ScratchDatabase
from tests.unit.orchestrator.calls.parts import Sink, agent_in

RUN_ID = "00000000-0000-0000-0000-000000000001"


@dataclass
class ScriptBench:
    """An agent that holds the given tools and `tool_script`."""

    agent: Agent
    tools: Sequence[Any]
    sandbox: PlayedSandbox
    database: Database
    conversation: Conversation
    pipeline: CallPipeline
    tool: ToolScript
    sink: Sink = field(default_factory=Sink)
    budget: NestedBudget = field(default_factory=lambda: NestedBudget(120))
    locale: Any = "en"
    ran: int = 0

    async def scope(self, **fields: Any) -> Scope:
        host = LocalToolHost("crew", [*self.tools, AskUser(), ProgressNote(), self.tool])
        registry = ToolRegistry([OfferedHost(host)], derived={ToolScript.name: ToolScript.derived})
        toolbox = await registry.toolbox(self.agent, self.locale)
        scope = Scope(
            self.conversation,
            self.agent,
            toolbox,
            RUN_ID,
            "web",
            self.locale,
            nested_budget=self.budget,
        )
        return replace(scope, **fields)

    async def run(self, play: Play, *, script: str = "pass", **fields: Any) -> CallOutcome:
        """One script, played; its outcome."""
        self.sandbox.play = play
        return (await self.run_all([script], **fields))[0]

    async def run_all(self, scripts: Sequence[str], **fields: Any) -> Sequence[CallOutcome]:
        """Scripts of one message."""
        calls = []
        for script in scripts:
            self.ran += 1
            calls.append(StoredCall(f"s{self.ran}", "tool_script", json.dumps({"script": script})))
        end = await self.pipeline.run(await self.scope(**fields), calls, self.sink)
        assert isinstance(end, Completed)
        return end.outcomes


@asynccontextmanager
async def script_bench(
    scratch: ScratchDatabase,
    tools: Sequence[Any],
    *,
    hooks: Hooks | None = None,
    models_url: str = "",
    seconds: float = 60,
    **profile: Any,
) -> AsyncIterator[ScriptBench]:
    """A bench; `profile` are fields of the agent."""
    with TemporaryDirectory(prefix="crew-s-") as name:
        folder = Path(name)
        database = Database(scratch.url, size=6)
        await database.open()
        async with played_sandbox(folder) as (sandbox, address), DirectedChannel(address) as channel:
            agent = replace(agent_in(folder / "home"), **profile)
            pipeline = CallPipeline(
                grant_for=lambda each: WorkspaceGrant(root=str(each.workspace)), hooks=hooks
            )
            keys = {"OPENAI_API_KEY": "sk-of-the-test", "OPENROUTER_API_KEY": "sk-of-the-test"}
            variables = {**keys, "OPENAI_BASE_URL": models_url, "OPENROUTER_BASE_URL": models_url}
            models = Models(ModelsConfig(routes=[Route("openai", "test")], variables=Variables(variables)))
            scripts = Scripts(
                sandbox=stub_of(channel),
                desk=pipeline.inner,
                questions=Questions(SideCalls(models, database, Treasury(database, (), lambda _: None))),
                database=database,
                seconds=seconds,
            )
            async with database.transaction() as connection:
                conversation = await conversations.create(
                    connection,
                    agent_id=agent.id,
                    channel="web",
                    title="",
                    autonomous=False,
                    cost_cap_usd=0,
                )
                await runs.create(
                    connection,
                    run_id=RUN_ID,
                    conversation_id=conversation.id,
                    agent_id=agent.id,
                    source="web",
                    after_seq=0,
                )
            try:
                yield ScriptBench(
                    agent, tools, sandbox, database, conversation, pipeline, ToolScript(scripts)
                )
            finally:
                await models.close()
                await database.close()


def stub_of(channel: grpc.aio.Channel) -> Any:
    return script_sandbox_pb2_grpc.ScriptSandboxStub(channel)
