"""The service crew.v1.Tools."""

from __future__ import annotations

from typing import Any

import grpc.aio
from crew.v1 import tools_pb2 as pb
from crew.v1 import tools_pb2_grpc

from services.common.wording import Locale
from services.orchestrator.agents.agents import Agents
from services.orchestrator.calls.registry import ToolRegistry
from services.orchestrator.scripts.reach import TOOL_SCRIPT

Context = grpc.aio.ServicerContext[Any, Any]


class ToolsServicer(tools_pb2_grpc.ToolsServicer):
    """What the crew can do: the union of every agent's own set (TLS-391)."""

    def __init__(self, *, agents: Agents, registry: ToolRegistry, locale: Locale) -> None:
        self._agents = agents
        self._registry = registry
        self._locale: Locale = locale

    async def List(self, request: pb.ListToolsRequest, context: Context) -> pb.ListToolsReply:
        """One row a tool, with who holds it."""
        rows = await self._registry.rows(self._agents.list(), self._locale)
        return pb.ListToolsReply(
            tools=[
                pb.Tool(
                    name=row.spec.name,
                    description=row.spec.description,
                    requires_approval=row.spec.requires_approval,
                    label=row.spec.label,
                    kind=row.spec.kind,
                    host=row.host,
                    agents=row.agents,
                    with_reads=True if row.spec.name == TOOL_SCRIPT else None,
                )
                for row in rows
            ]
        )
