"""The service crew.v1.Agents."""

from __future__ import annotations

from typing import Any

import grpc.aio
from crew.v1 import agents_pb2 as pb
from crew.v1 import agents_pb2_grpc

from services.common.errors import NotFound
from services.common.times import utc_now
from services.common.wording import Locale
from services.orchestrator.agents.agents import Agents
from services.orchestrator.agents.profile import Agent
from services.orchestrator.calls.registry import ToolRegistry
from services.orchestrator.context.prompt import assemble
from services.orchestrator.context.texts import read_texts

Context = grpc.aio.ServicerContext[Any, Any]


class AgentsServicer(agents_pb2_grpc.AgentsServicer):
    """Who is in the crew, and what each is told."""

    def __init__(self, *, agents: Agents, registry: ToolRegistry, locale: Locale) -> None:
        self._agents = agents
        self._registry = registry
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
        texts = await read_texts(agent)
        prompt = assemble(agent, toolbox.specs, [], self._locale, utc_now(), texts=texts)
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
            warnings=agent.warnings,
        )
        if agent.escalation_route is not None:
            view.escalation_route = agent.escalation_route
        return view
