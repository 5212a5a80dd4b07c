"""Real parts to run calls with: tools in process, a sink that keeps what it is told, records."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from services.common.settings.config import CrewConfig
from services.common.toolhost.contract import (
    NoOpinion,
    Run,
    ToolResult,
    ToolSpec,
    Verdict,
    WorkspaceGrant,
    text_result,
)
from services.common.toolhost.nested import NestedCall
from services.orchestrator.agents.agents import Agents
from services.orchestrator.agents.profile import Agent
from services.orchestrator.calls.arguments import digest
from services.orchestrator.calls.contract import CallOutcome, InnerStart, Scope
from services.orchestrator.calls.hooks import Hooks
from services.orchestrator.calls.masking import SecretMask
from services.orchestrator.calls.pipeline import CallPipeline
from services.orchestrator.calls.toolbox import HeldTool, Toolbox
from services.orchestrator.hosts.local import LocalToolHost
from services.orchestrator.hosts.own import AskUser, ProgressNote
from services.orchestrator.store.records import Approval, Conversation, StoredCall

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
ANY_TEXT = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "count": {"type": "integer"}},
    "additionalProperties": False,
}


class Scripted:
    """A tool that does what the test says."""

    def __init__(
        self,
        name: str,
        run: Callable[[Run], Awaitable[ToolResult]] | None = None,
        *,
        judge: Callable[[], Awaitable[Verdict]] | None = None,
        parameters: Mapping[str, Any] = ANY_TEXT,
        prepare: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None,
        **flags: Any,
    ) -> None:
        self.name = name
        self.ran: list[Run] = []
        self._run = run
        self._judge = judge
        self._prepare = prepare
        self._spec = ToolSpec(
            name=name,
            description=name,
            parameters=parameters,
            label=flags.pop("label", name),
            kind=flags.pop("kind", "read"),
            effect=flags.pop("effect", "read"),
            judges=judge is not None,
            prepares_arguments=prepare is not None,
            **flags,
        )

    def spec(self, locale: str) -> ToolSpec:
        return self._spec

    def offered_to(self, mode: str, settings: Mapping[str, Any]) -> bool:
        return True

    def prepare(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._prepare(arguments) if self._prepare else arguments

    async def judge(self, context: Any, arguments: Mapping[str, Any]) -> Verdict:
        return await self._judge() if self._judge else NoOpinion()

    async def run(self, run: Run) -> ToolResult:
        self.ran.append(run)
        return await self._run(run) if self._run else text_result(f"{self.name} ran")


@dataclass
class Sink:
    """Keeps what the pipeline says, in the order it is said."""

    events: list[tuple[str, str]] = field(default_factory=list)
    outcomes: dict[str, CallOutcome] = field(default_factory=dict)
    stored: list[CallOutcome] = field(default_factory=list)
    progress_texts: list[str] = field(default_factory=list)
    allowed: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    nested_calls: list[NestedCall] = field(default_factory=list)
    fail_starting: Exception | None = None

    async def announced(self, call: StoredCall) -> None:
        self.events.append(("announced", call.id))

    async def progress(self, call_id: str, text: str, details: Mapping[str, Any]) -> None:
        self.events.append(("progress", call_id))
        self.progress_texts.append(text)

    async def nested(self, call_id: str, index: int, call: NestedCall) -> None:
        self.events.append((f"nested {index}", call_id))
        self.nested_calls.append(call)

    async def starting(
        self,
        call: StoredCall,
        arguments_json: str,
        allowed_by: str,
        rule: str,
        effect: str,
        reviewed_by: str,
    ) -> None:
        if self.fail_starting is not None:
            raise self.fail_starting
        self.events.append(("starting", call.id))
        self.allowed[call.id] = (arguments_json, allowed_by, rule)

    async def inner_starting(self, starts: Sequence[InnerStart]) -> None:
        for start in starts:
            self.events.append(("inner_starting", start.call.id))
            self.allowed[start.call.id] = (start.arguments_json, start.allowed_by, start.rule)

    async def inner_ended(self, outcome: CallOutcome) -> None:
        self.events.append(("inner_ended", outcome.call.id))
        self.outcomes[outcome.call.id] = outcome

    async def ended(self, outcome: CallOutcome) -> None:
        self.events.append(("ended", outcome.call.id))
        self.outcomes[outcome.call.id] = outcome

    async def store(self, outcomes: Sequence[CallOutcome]) -> None:
        for outcome in outcomes:
            self.events.append(("stored", outcome.call.id))
        self.stored.extend(outcomes)

    def of(self, kind: str) -> list[str]:
        return [call_id for name, call_id in self.events if name == kind]


def agent_in(home: Path, **config: Any) -> Agent:
    agents = Agents(home, CrewConfig(**config))
    agents.load()
    return agents.master


def conversation(**fields: Any) -> Conversation:
    whole = Conversation("conv", "default", "web", "", NOW, NOW, False, (), (), None, 0.5, 0.0, 0)
    return replace(whole, **fields)


def call(call_id: str, name: str, arguments: str = "{}", **fields: Any) -> StoredCall:
    return StoredCall(call_id, name, arguments, **fields)


def approval(of: StoredCall, status: str, arguments: str, **fields: Any) -> Approval:
    whole = Approval(
        id="approval",
        conversation_id="conv",
        agent_id="default",
        run_id="run",
        kind="tool",
        tool=of.name,
        tool_call_id=of.id,
        arguments=arguments,
        arguments_sha256=digest(arguments),
        reason="",
        summary="",
        preview="",
        options=(),
        default_answer=None,
        answer=None,
        status=status,
        may_always=True,
        created_at=NOW,
        expires_at=NOW,
        decided_by="owner",
    )
    return replace(whole, **fields)


@dataclass
class Bench:
    """A pipeline with an agent and its tools."""

    agent: Agent
    tools: Sequence[Any]
    hooks: Hooks = field(default_factory=Hooks)
    mask: SecretMask = field(default_factory=SecretMask)
    sink: Sink = field(default_factory=Sink)

    @property
    def toolbox(self) -> Toolbox:
        tools = [*self.tools, AskUser(), ProgressNote()]
        host = LocalToolHost("crew", tools)
        return Toolbox(tuple(HeldTool(tool.spec("en"), host) for tool in tools))

    def scope(self, **fields: Any) -> Scope:
        whole = Scope(conversation(), self.agent, self.toolbox, "run", "web", "en")
        return replace(whole, **fields)

    async def run(self, *calls: StoredCall, **fields: Any) -> Any:
        pipeline = CallPipeline(
            grant_for=lambda agent: WorkspaceGrant(root=str(agent.workspace)),
            hooks=self.hooks,
            mask=self.mask,
        )
        return await pipeline.run(self.scope(**fields), calls, self.sink)


class Gate:
    """Tools that meet: each says that it has begun and waits until it is let go."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.all_begun = asyncio.Condition()
        self.go = asyncio.Event()

    async def __call__(self, run: Run) -> ToolResult:
        async with self.all_begun:
            self.begun.append(run.context.call_id)
            self.all_begun.notify_all()
        await self.go.wait()
        return text_result(run.context.call_id)

    async def wait_for(self, count: int) -> None:
        async with asyncio.timeout(30), self.all_begun:
            await self.all_begun.wait_for(lambda: len(self.begun) >= count)
