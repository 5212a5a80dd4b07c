"""The service crew.v1.Agents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import grpc.aio
from crew.v1 import agents_pb2 as pb
from crew.v1 import agents_pb2_grpc

from services.common.errors import NotFound
from services.common.times import utc_now
from services.common.wording import Locale, load
from services.orchestrator.agents.agents import Agents
from services.orchestrator.agents.profile import Agent
from services.orchestrator.calls.registry import ToolRegistry
from services.orchestrator.calls.toolbox import Toolbox
from services.orchestrator.context.prompt import Prompt, assemble
from services.orchestrator.context.sizes import MOST_FIXED, WARNED_FIXED, tokens_of
from services.orchestrator.context.texts import read_texts
from services.orchestrator.models.contract import Route
from services.orchestrator.models.facade import Models

Context = grpc.aio.ServicerContext[Any, Any]


class AgentsServicer(agents_pb2_grpc.AgentsServicer):
    """Who is in the crew, and what each is told."""

    def __init__(self, *, agents: Agents, registry: ToolRegistry, models: Models, locale: Locale) -> None:
        self._agents = agents
        self._registry = registry
        self._models = models
        self._locale: Locale = locale

    async def List(self, request: pb.ListAgentsRequest, context: Context) -> pb.ListAgentsReply:
        """The master first, then by id."""
        return pb.ListAgentsReply(agents=[await self._view(agent) for agent in self._agents.list()])

    async def Get(self, request: pb.GetAgentRequest, context: Context) -> pb.Agent:
        """One agent."""
        return await self._view(self._found(request.id))

    async def Prompt(self, request: pb.GetAgentRequest, context: Context) -> pb.AgentPrompt:
        """The system prompt as the next model call would have it (GTW-103)."""
        agent = self._found(request.id)
        toolbox = await self._registry.toolbox(agent, self._locale)
        prompt = await _first_prompt(agent, toolbox, self._locale)
        return pb.AgentPrompt(
            prompt=prompt.system, persona_names=agent.persona_names, prompt_chars=len(prompt.system)
        )

    def _found(self, agent_id: str) -> Agent:
        agent = self._agents.get(agent_id)
        if agent is None:
            raise NotFound("NO_AGENT", "error.no_agent", id=agent_id[:80])
        return agent

    async def _view(self, agent: Agent) -> pb.Agent:
        toolbox = await self._registry.toolbox(agent, self._locale)
        view = pb.Agent(
            id=agent.id,
            name=agent.name,
            description=agent.description,
            mode=agent.mode,
            master=agent.master,
            routes=agent.routes,
            tools=toolbox.names,
            workspace=str(agent.workspace),
            max_steps=agent.max_steps,
            cost_cap_usd=agent.cost_cap_usd,
            autonomous=agent.autonomous,
            persona_names=agent.persona_names,
            warnings=[*agent.warnings, *await self._narrow_window(agent, toolbox)],
        )
        if agent.escalation_route is not None:
            view.escalation_route = agent.escalation_route
        return view

    async def _narrow_window(self, agent: Agent, toolbox: Toolbox) -> Sequence[str]:
        """A warning when what every prompt holds leaves little of the smallest window (FLD-004)."""
        windows = await self._models.windows([Route.parse(route) for route in agent.routes])
        if not windows:
            return ()
        route = min(windows, key=lambda route: windows[route].tokens)
        window = windows[route].tokens
        sizes = (await _first_prompt(agent, toolbox, self._locale)).sizes
        share = tokens_of(sizes.fixed) / window
        if share <= WARNED_FIXED:
            return ()
        warning = load("orchestrator").text(
            self._locale,
            "agents.warning.narrow_window",
            percent=round(share * 100),
            window=f"{window:,}",
            route=route,
            instructions=f"{tokens_of(sizes.instructions):,}",
            tools=f"{tokens_of(sizes.tools):,}",
            memory=f"{tokens_of(sizes.memory):,}",
            limit=round(MOST_FIXED * 100),
        )
        return (warning,)


async def _first_prompt(agent: Agent, toolbox: Toolbox, locale: Locale) -> Prompt:
    """What the agent would be told now, before any message."""
    return assemble(agent, toolbox.specs, [], locale, utc_now(), texts=await read_texts(agent))
