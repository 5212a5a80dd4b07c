"""The orchestrator, put together: everything is constructed and wired here, once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

import structlog
from crew.v1 import (
    agents_pb2_grpc,
    approvals_pb2_grpc,
    auth_pb2_grpc,
    conversations_pb2_grpc,
    crew_pb2_grpc,
    runs_pb2_grpc,
    system_pb2_grpc,
    tools_pb2_grpc,
    turns_pb2_grpc,
)

from services.common.rpc import Arrow, DirectedChannel, RpcServer, Verifier, connect
from services.common.settings import OrchestratorSettings
from services.common.wording import load
from services.orchestrator.access.access import Access
from services.orchestrator.access.scopes import ScopeCheck
from services.orchestrator.agents.agents import Agents
from services.orchestrator.api.agents import AgentsServicer
from services.orchestrator.api.approvals import ApprovalsServicer
from services.orchestrator.api.auth import AuthServicer
from services.orchestrator.api.conversations import ConversationsServicer
from services.orchestrator.api.crew import CrewServicer
from services.orchestrator.api.runs import RunsServicer
from services.orchestrator.api.system import SystemServicer
from services.orchestrator.api.tools import ToolsServicer
from services.orchestrator.api.turns import TurnsServicer
from services.orchestrator.calls.pipeline import CallPipeline
from services.orchestrator.calls.registry import OfferedHost, ToolRegistry
from services.orchestrator.hosts.local import LocalToolHost
from services.orchestrator.hosts.remote import RemoteToolHost
from services.orchestrator.models.config import ModelsConfig, Price
from services.orchestrator.models.contract import Route
from services.orchestrator.models.facade import Models
from services.orchestrator.store.pool import Database
from services.orchestrator.turns.activity import Activity
from services.orchestrator.turns.asking import Asking
from services.orchestrator.turns.decisions import Decisions
from services.orchestrator.turns.desk import TurnDesk
from services.orchestrator.turns.inbound import Inbound
from services.orchestrator.turns.loop import TurnLoop
from services.orchestrator.turns.runner import TurnRunner
from services.orchestrator.turns.stream import Streams
from services.orchestrator.turns.upkeep import Upkeep
from services.orchestrator.turns.views import message_view
from services.orchestrator.turns.writes import TurnWrites

log = structlog.get_logger(__name__)

# How long running calls may take to end when the process stops, in seconds.
_GRACE_SECONDS = 2.0


async def serve(
    settings: OrchestratorSettings, *, ready: Callable[[], None] | None = None, stop: asyncio.Event
) -> None:
    """Serve until `stop` is set; turns that run then are handed over, not lost.

    Args:
        settings: Of this service.
        ready: Called once everything answers.
        stop: Ends the service.

    Raises:
        StartError: A condition that stops the start, in one sentence.
    """
    async with AsyncExitStack() as stack:
        server, desk = await _build(settings, stack)
        stack.push_async_callback(server.stop, _GRACE_SECONDS)
        await server.start()
        if ready is not None:
            ready()
        log.info("orchestrator_ready", turns=desk.streams is not None)
        await stop.wait()
