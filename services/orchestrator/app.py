"""The orchestrator, put together: everything is constructed and wired here, once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

import psycopg
import psycopg_pool
import structlog
from crew.v1 import (
    agents_pb2_grpc,
    approvals_pb2_grpc,
    audit_pb2_grpc,
    auth_pb2_grpc,
    budgets_pb2_grpc,
    conversations_pb2_grpc,
    crew_pb2_grpc,
    messages_pb2_grpc,
    notifications_pb2_grpc,
    runs_pb2_grpc,
    script_sandbox_pb2_grpc,
    script_stores_pb2_grpc,
    stats_pb2_grpc,
    system_pb2_grpc,
    tools_pb2_grpc,
    turns_pb2_grpc,
)

from services.common.rpc import RpcServer, Verifier, connect
from services.common.settings import OrchestratorSettings
from services.common.start import StartError
from services.common.toolhost.contract import Tool
from services.common.wording import load
from services.orchestrator.access import ApiTokens, Logins, ScopeGuard
from services.orchestrator.access.audit import AccessAudit
from services.orchestrator.access.passwords import Passwords
from services.orchestrator.agents.agents import Agents
from services.orchestrator.api.agents import AgentsServicer
from services.orchestrator.api.approvals import ApprovalsServicer
from services.orchestrator.api.audit import AuditServicer
from services.orchestrator.api.auth import AuthServicer
from services.orchestrator.api.budgets import BudgetsServicer
from services.orchestrator.api.conversations import ConversationsServicer
from services.orchestrator.api.crew import CrewServicer
from services.orchestrator.api.messages import MessagesServicer
from services.orchestrator.api.notifications import NotificationsServicer
from services.orchestrator.api.runs import RunsServicer
from services.orchestrator.api.script_stores import ScriptStoresServicer
from services.orchestrator.api.stats import StatsServicer
from services.orchestrator.api.store_faults import StoreFaults
from services.orchestrator.api.system import SystemServicer
from services.orchestrator.api.tools import ToolsServicer
from services.orchestrator.api.turns import TurnsServicer
from services.orchestrator.calls.masking import SecretMask
from services.orchestrator.calls.metrics import ToolMetrics
from services.orchestrator.calls.pipeline import CallPipeline
from services.orchestrator.calls.registry import ToolRegistry
from services.orchestrator.calls.review import Reviewer
from services.orchestrator.hosts.own import AskUser, ProgressNote
from services.orchestrator.hosts.script_sandbox import ScriptSandboxState
from services.orchestrator.models.config import ModelsConfig, Price
from services.orchestrator.models.contract import Route
from services.orchestrator.models.facade import Models
from services.orchestrator.money.budgets import budgets_of, unknown_agents
from services.orchestrator.money.side_calls import SideCalls
from services.orchestrator.money.treasury import Treasury
from services.orchestrator.notifications import Notifier
from services.orchestrator.reaching import script_sandbox, tool_hosts
from services.orchestrator.scripts.questions import Questions
from services.orchestrator.scripts.running import Scripts
from services.orchestrator.scripts.tool_script import ToolScript
from services.orchestrator.store import spending
from services.orchestrator.store.pool import Database
from services.orchestrator.store.space import Space
from services.orchestrator.turns.activity import Activity
from services.orchestrator.turns.allowance import Allowance
from services.orchestrator.turns.asking import Asking
from services.orchestrator.turns.budget_notices import BudgetNotices
from services.orchestrator.turns.compacting import Compacting
from services.orchestrator.turns.continuing import Continuing
from services.orchestrator.turns.decisions import Decisions
from services.orchestrator.turns.desk import TurnDesk
from services.orchestrator.turns.escalation import Escalation
from services.orchestrator.turns.fitting import Fitting
from services.orchestrator.turns.forking import Forking
from services.orchestrator.turns.inbound import Inbound
from services.orchestrator.turns.loop import TurnLoop
from services.orchestrator.turns.naming import Naming
from services.orchestrator.turns.observing import CallRecord
from services.orchestrator.turns.peers import Peers
from services.orchestrator.turns.prompt_changes import PromptChanges
from services.orchestrator.turns.runner import TurnRunner
from services.orchestrator.turns.stream import Streams
from services.orchestrator.turns.trail import Trail
from services.orchestrator.turns.trajectory.export import TrajectoryExport
from services.orchestrator.turns.upkeep import Upkeep
from services.orchestrator.turns.views import message_view
from services.orchestrator.turns.writes import TurnWrites

log = structlog.get_logger(__name__)

# How long calls of others may take to end when the process stops, in seconds.
_GRACE_SECONDS = 2.0
_CALLERS = ("gateway", "cli", "orchestrator")


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
        orchestrator = _Orchestrator(settings)
        await orchestrator.start(stack)
        if ready is not None:
            ready()
        log.info("orchestrator_ready")
        await stop.wait()


class _Orchestrator:
    """All parts, in the order in which they depend on each other."""

    def __init__(self, settings: OrchestratorSettings) -> None:
        values = settings.config.values
        locale = values.language
        catalogue = load("common", "orchestrator")
        self.settings = settings
        self.database = Database(settings.database_url.get_secret_value(), timezone=values.timezone)
        space = Space(settings.home, self.database, min_free_mb=settings.min_free_mb)
        self.models = Models(_models_config(settings))
        self.agents = Agents(
            settings.home,
            values,
            usable=lambda route: bool(self.models.usable([Route.parse(route)])),
            closed_ports=sorted({settings.port, settings.grpc_port, *settings.closed_ports} - {0}),
            private_paths=[settings.secrets_dir],
        )
        mask = SecretMask(settings.secret_values())
        pipeline = CallPipeline(grant_for=self.agents.workspace_grant, mask=mask)
        metrics = ToolMetrics()
        activity, streams = Activity(), Streams()
        notices = BudgetNotices(activity, catalogue, locale)
        treasury = Treasury(self.database, budgets_of(values.budgets), notices.nearly_spent)
        side_calls = SideCalls(self.models, self.database, treasury)
        self.sandbox = script_sandbox(settings)
        self.channels, hosts = tool_hosts(settings, self._own_tools(pipeline, side_calls))
        if self.sandbox is not None:
            self.channels.append(self.sandbox)
        self.registry = ToolRegistry(hosts, derived={ToolScript.name: ToolScript.derived})
        writes = TurnWrites(self.database, Trail(mask))
        loop = TurnLoop(
            database=self.database,
            writes=writes,
            asking=Asking(
                models=self.models,
                fitting=Fitting(
                    models=self.models,
                    compacting=Compacting(database=self.database, models=self.models, catalogue=catalogue),
                    catalogue=catalogue,
                ),
                changes=PromptChanges(self.database),
                writes=writes,
                catalogue=catalogue,
                view=message_view,
            ),
            allowance=Allowance(
                database=self.database,
                writes=writes,
                treasury=treasury,
                catalogue=catalogue,
                approval_ttl_seconds=values.approval_ttl_seconds,
            ),
            escalation=Escalation(writes, catalogue),
            continuing=Continuing(writes=writes, catalogue=catalogue),
            registry=self.registry,
            pipeline=pipeline,
            catalogue=catalogue,
            observed=CallRecord(metrics),
            reviewer=Reviewer(self.models, SideCalls(self.models, self.database, treasury)),
            approval_ttl_seconds=values.approval_ttl_seconds,
        )
        runner = TurnRunner(
            database=self.database,
            writes=writes,
            loop=loop,
            agents=self.agents,
            streams=streams,
            activity=activity,
            catalogue=catalogue,
            locale=locale,
            space=space,
        )
        inbound = Inbound(database=self.database, agents=self.agents, locale=locale, timezone=values.timezone)
        decisions = Decisions(self.database)
        self.upkeep = Upkeep(
            database=self.database,
            runner=runner,
            inbound=inbound,
            decisions=decisions,
            locale=locale,
            space=space,
            keep_days=values.keep_days,
            schedule=settings.schedule,
            address=_own_address(settings),
        )
        self.peers = Peers(
            lambda address: connect(
                address, caller="orchestrator", called="orchestrator", secrets_dir=settings.secrets_dir
            )
        )
        self.notifier = Notifier(
            database=self.database,
            registry=self.registry,
            agents=self.agents,
            activity=activity,
            locale=locale,
        )
        self.naming = Naming(
            database=self.database,
            models=self.models,
            side_calls=SideCalls(self.models, self.database, treasury),
            activity=activity,
            catalogue=catalogue,
            locale=locale,
            route=Route.parse(values.title_route) if values.title_route else None,
        )
        desk = TurnDesk(
            database=self.database,
            inbound=inbound,
            decisions=decisions,
            runner=runner,
            upkeep=self.upkeep,
            streams=streams,
            peers=self.peers,
            activity=activity,
            space=space,
            naming=self.naming,
        )
        audit = AccessAudit(self.database)
        owner_token = settings.owner_token.get_secret_value() if settings.owner_token else None
        logins = Logins(self.database, Passwords(), audit, owner_token=owner_token)
        self.server = RpcServer(
            settings.orchestrator_listen,
            catalogue=catalogue,
            verifier=Verifier.read(settings.secrets_dir, "orchestrator", _CALLERS),
            locale=locale,
            interceptors=[StoreFaults(space), ScopeGuard(audit)],
            setting="MY_AGENT_ORCHESTRATOR_LISTEN",
        )
        grpc = self.server.grpc
        conversations = ConversationsServicer(
            database=self.database,
            agents=self.agents,
            desk=desk,
            activity=activity,
            registry=self.registry,
            forking=Forking(database=self.database, agents=self.agents, catalogue=catalogue, locale=locale),
        )
        conversations_pb2_grpc.add_ConversationsServicer_to_server(conversations, grpc)
        messages_pb2_grpc.add_MessagesServicer_to_server(MessagesServicer(self.database), grpc)
        turns_pb2_grpc.add_TurnsServicer_to_server(
            TurnsServicer(desk=desk, catalogue=catalogue, locale=locale), grpc
        )
        approvals_pb2_grpc.add_ApprovalsServicer_to_server(ApprovalsServicer(self.database), grpc)
        notifications_pb2_grpc.add_NotificationsServicer_to_server(NotificationsServicer(self.database), grpc)
        runs_pb2_grpc.add_RunsServicer_to_server(
            RunsServicer(
                database=self.database,
                activity=activity,
                trajectories=TrajectoryExport(self.database, settings.secret_values(), locale),
            ),
            grpc,
        )
        agents_pb2_grpc.add_AgentsServicer_to_server(
            AgentsServicer(agents=self.agents, registry=self.registry, models=self.models, locale=locale),
            grpc,
        )
        script_stores_pb2_grpc.add_ScriptStoresServicer_to_server(
            ScriptStoresServicer(database=self.database, agents=self.agents), grpc
        )
        tools_pb2_grpc.add_ToolsServicer_to_server(
            ToolsServicer(agents=self.agents, registry=self.registry, locale=locale), grpc
        )
        audit_pb2_grpc.add_AuditServicer_to_server(
            AuditServicer(database=self.database, timezone=values.timezone), grpc
        )
        stats_pb2_grpc.add_StatsServicer_to_server(
            StatsServicer(database=self.database, metrics=metrics), grpc
        )
        budgets_pb2_grpc.add_BudgetsServicer_to_server(
            BudgetsServicer(treasury, timezone=values.timezone), grpc
        )
        system = SystemServicer(
            settings=settings,
            database=self.database,
            agents=self.agents,
            registry=self.registry,
            models=self.models,
            catalogue=catalogue,
            space=space,
            sandbox=ScriptSandboxState(self.sandbox) if self.sandbox is not None else None,
        )
        system_pb2_grpc.add_SystemServicer_to_server(system, grpc)
        auth_pb2_grpc.add_AuthServicer_to_server(
            AuthServicer(logins, ApiTokens(self.database, audit), audit), grpc
        )
        crew_pb2_grpc.add_CrewServicer_to_server(
            CrewServicer(desk=desk, database=self.database, activity=activity), grpc
        )

    def _own_tools(self, pipeline: CallPipeline, side_calls: SideCalls) -> list[Tool]:
        """Tools of this process."""
        tools: list[Tool] = [AskUser(), ProgressNote()]
        if self.sandbox is None:
            return tools
        scripts = Scripts(
            sandbox=script_sandbox_pb2_grpc.ScriptSandboxStub(self.sandbox),
            desk=pipeline.inner,
            questions=Questions(side_calls),
            database=self.database,
        )
        return [*tools, ToolScript(scripts)]

    async def start(self, stack: AsyncExitStack) -> None:
        """Bring everything up; `stack` takes it down again in the opposite order."""
        await asyncio.to_thread(self.agents.load)
        routes = [Route.parse(route) for agent in self.agents.list() for route in agent.routes]
        # The first turn need not wait for lists of models.
        learning = asyncio.create_task(self.models.windows(routes), name="windows")
        stack.callback(learning.cancel)
        for warning in self.agents.warnings():
            log.warning("agent_warning", text=warning)
        values = self.settings.config.values
        for agent_id in unknown_agents(values.budgets, [agent.id for agent in self.agents.list()]):
            text = load("orchestrator").text(values.language, "money.warning.unknown_agent", id=agent_id)
            log.warning("budget_warning", text=text)
        stack.push_async_callback(self.models.close)
        for channel in self.channels:
            stack.push_async_callback(channel.close)
        stack.push_async_callback(self.peers.close)
        stack.push_async_callback(self.database.close)
        try:
            await self.database.open()
        except psycopg_pool.PoolTimeout:
            raise StartError(
                "error.start.database_unreachable", catalogue=load("common", "orchestrator")
            ) from None
        try:
            async with self.database.connection() as connection:
                await spending.today(connection)
        except psycopg.errors.InvalidParameterValue:
            raise StartError(
                "error.start.timezone_unknown", catalogue=load("common", "orchestrator"), zone=values.timezone
            ) from None
        for agent in self.agents.list():
            for warning in await self.registry.warnings(agent, self.settings.locale):
                log.warning("agent_warning", text=warning)
        stack.push_async_callback(self.naming.close)
        stack.push_async_callback(self.upkeep.close)
        await self.upkeep.start()
        stack.push_async_callback(self.notifier.close)
        await self.notifier.start()
        stack.push_async_callback(self.server.stop, _GRACE_SECONDS)
        await self.server.start()


def _models_config(settings: OrchestratorSettings) -> ModelsConfig:
    config = settings.config
    values = config.values
    return ModelsConfig(
        routes=[Route.parse(route) for route in values.routes],
        routes_source=config.source("routes"),
        variables=settings.variables,
        openrouter_providers=values.openrouter_providers,
        openrouter_provider_fallbacks=values.openrouter_provider_fallbacks,
        prices={
            Route.parse(route): Price(price.input, price.output, price.cached_input, price.max_output_tokens)
            for route, price in values.prices.items()
        },
        context_tokens={Route.parse(route): tokens for route, tokens in values.context_tokens.items()},
    )


def _own_address(settings: OrchestratorSettings) -> str:
    """Where other replicas reach this one; empty when that is not known."""
    listen = settings.orchestrator_listen
    host = listen.rpartition(":")[0].strip("[]")
    everywhere = host in {"", "::"} or set(host) <= set("0.")
    return settings.orchestrator_address or ("" if everywhere else listen)
