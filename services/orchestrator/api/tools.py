"""The service crew.v1.Tools."""

from __future__ import annotations

from typing import Any

import grpc.aio
from crew.v1 import tools_pb2 as pb
from crew.v1 import tools_pb2_grpc

from services.common.wording import Locale
from services.orchestrator.agents.agents import Agents
from services.orchestrator.calls.registry import Registry

Context = grpc.aio.ServicerContext[Any, Any]


class ToolsServicer(tools_pb2_grpc.ToolsServicer):
    """What the crew can do: the union of every agent's own set (TLS-391)."""

    def __init__(self, *, agents: Agents, registry: Registry, locale: Locale) -> None:
        self._agents = agents
        self._registry = registry
        self._locale: Locale = locale

    async def List(self, request: pb.ListToolsRequest, context: Context) -> pb.ListToolsReply:
        """One row a tool, with who holds it."""
        rows: dict[str, pb.Tool] = {}
        for agent in self._agents.list():
            toolbox = await self._registry.toolbox(agent, self._locale)
            for held in toolbox.tools:
                spec = held.spec
                row = rows.setdefault(
                    spec.name,
                    pb.Tool(
                        name=spec.name,
                        description=spec.description,
                        requires_approval=spec.requires_approval,
                        label=spec.label,
                        kind=spec.kind,
                        host=held.host.name,
                    ),
                )
                row.agents.append(agent.id)
        return pb.ListToolsReply(tools=rows.values())
