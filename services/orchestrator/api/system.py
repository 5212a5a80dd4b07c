"""The service crew.v1.System: health, connections, settings, figures."""

from __future__ import annotations

import dataclasses
from typing import Any

import grpc.aio
import orjson
from crew.v1 import system_pb2 as pb
from crew.v1 import system_pb2_grpc

from services.common.settings import OrchestratorSettings
from services.common.times import iso, utc_now
from services.common.version import VERSION
from services.common.wording import Catalogue, Locale
from services.orchestrator.agents.agents import Agents
from services.orchestrator.calls.registry import ToolRegistry
from services.orchestrator.hosts.contract import HostState
from services.orchestrator.hosts.own import OWN_HOST
from services.orchestrator.hosts.script_sandbox import ScriptSandboxState
from services.orchestrator.models.contract import Route
from services.orchestrator.models.facade import Models
from services.orchestrator.models.facade import RouteState as ModelRouteState
from services.orchestrator.money.statistics import CachedStatistics
from services.orchestrator.store import ledger, notifications
from services.orchestrator.store.pool import Database
from services.orchestrator.store.space import Space

Context = grpc.aio.ServicerContext[Any, Any]


class SystemServicer(system_pb2_grpc.SystemServicer):
    """How the crew is, what it is connected to, how it is set, what it has spent."""

    def __init__(
        self,
        *,
        settings: OrchestratorSettings,
        database: Database,
        agents: Agents,
        registry: ToolRegistry,
        models: Models,
        catalogue: Catalogue,
        space: Space,
        sandbox: ScriptSandboxState | None = None,
    ) -> None:
        self._settings = settings
        self._database = database
        self._statistics = CachedStatistics(database, timezone=settings.config.values.timezone)
        self._agents = agents
        self._registry = registry
        self._models = models
        self._catalogue = catalogue
        self._space = space
        self._sandbox = sandbox
        self._locale: Locale = settings.config.values.language
        # When each service was last seen to change, for "since when".
        self._since: dict[str, tuple[bool, str]] = {}

    async def Health(self, request: pb.HealthRequest, context: Context) -> pb.HealthReply:
        """Each service and the room to store; degraded when one is down or full (TRN-326, FLD-051)."""
        await self._ask_hosts()
        database = await self._database.reachable()
        services = [
            self._health("orchestrator", True, ""),
            self._health("database", database, "" if database else self._text("health.database_down")),
        ]
        shortage = self._space.shortage
        note = self._text(f"health.shortage.{shortage}", limit=self._space.min_free_mb) if shortage else ""
        services.append(self._health("storage", shortage is None, note))
        services += [
            self._health(state.name, state.status == "ready", state.note)
            for state in self._registry.states()
            if state.name != OWN_HOST
        ]
        if self._sandbox is not None:
            scripts = await self._sandbox.state(self._locale)
            services.append(self._health(scripts.name, scripts.status == "ready", scripts.note))
        whole = all(service.reachable for service in services)
        return pb.HealthReply(status="ok" if whole else "degraded", version=VERSION, services=services)

    async def Connections(self, request: pb.ConnectionsRequest, context: Context) -> pb.ConnectionsReply:
        """What the crew reaches, and what is missing; never a secret (TLS-398)."""
        await self._ask_hosts()
        values = self._settings.config.values
        routes = [Route.parse(route) for agent in self._agents.list() for route in agent.routes]
        async with self._database.connection() as connection:
            troubles = await notifications.open_troubles(connection)
        connections = self._models.connections(list(dict.fromkeys(routes)))
        return pb.ConnectionsReply(
            providers=connections.providers,
            routes=[str(route) for route in connections.routes],
            routes_source=connections.routes_source,
            vision_routes=values.vision_routes,
            audio_routes=values.audio_routes,
            keys=[pb.KeyPresence(name=key.name, present=key.present) for key in connections.keys],
            route_states=[self._route_state(state) for state in connections.states],
            hosts=[await self._host_state(state) for state in await self._host_states()],
            troubles=[
                pb.ToolTrouble(
                    tool=trouble.subject,
                    cause=trouble.cause,
                    since=iso(trouble.created_at),
                    note=trouble.text,
                )
                for trouble in troubles
            ],
        )

    async def Settings(self, request: pb.SettingsRequest, context: Context) -> pb.SettingsReply:
        """Every setting in force and where it comes from (GTW-106)."""
        config = self._settings.config
        shown = config.values.model_dump(mode="json")
        return pb.SettingsReply(
            version=VERSION,
            home=str(self._settings.home),
            language=config.values.language,
            timezone=config.values.timezone,
            settings=[
                pb.Setting(key=key, value=orjson.dumps(value).decode(), source=config.source(key))
                for key, value in sorted(shown.items())
            ],
        )

    async def Stats(self, request: pb.StatsRequest, context: Context) -> pb.StatsReply:
        """The ledger added up in the person's days (TRN-330 to 333)."""
        found = await self._statistics.now()
        return pb.StatsReply(
            days=[pb.DayStats(day=total.names[0], **_sums(total)) for total in found.days],
            models=[
                pb.ModelStats(provider=total.names[0], model=total.names[1], **_sums(total))
                for total in found.models
            ],
            purposes=[pb.PurposeStats(purpose=total.names[0], **_sums(total)) for total in found.purposes],
            by_agent=[pb.AgentStats(agent_id=total.names[0], **_sums(total)) for total in found.by_agent],
            cache_by_agent=[
                pb.AgentCacheStats(agent_id=agent, prompt_tokens=prompt, cached_tokens=cached)
                for agent, prompt, cached in found.cache_by_agent
            ],
            unknown_cache_calls=found.unknown_cache_calls,
            timezone=self._settings.config.values.timezone,
        )

    async def _ask_hosts(self) -> None:
        """Have every host describe itself, so that what is said of it is of now."""
        master = self._agents.list()[0]
        await self._registry.toolbox(master, self._locale)

    async def _host_states(self) -> list[HostState]:
        states = list(self._registry.states())
        return states if self._sandbox is None else [*states, await self._sandbox.state(self._locale)]

    async def _host_state(self, state: HostState) -> pb.HostState:
        rows = await self._registry.rows(self._agents.list(), self._locale)
        tools = [row.spec.name for row in rows if row.host == state.name]
        return pb.HostState(
            name=state.name,
            reachable=state.status == "ready",
            note=state.note,
            # The crew's own tools start nothing that could be kept apart.
            isolation="" if state.name == OWN_HOST else state.isolation,
            isolation_note=state.isolation_note,
            tools=tools,
        )

    def _route_state(self, state: ModelRouteState) -> pb.RouteState:
        view = pb.RouteState(route=str(state.route), usable=state.usable)
        if state.fault is not None:
            view.note = state.fault.sentence(self._catalogue, self._locale)
        if state.passed_over_until is not None:
            view.passed_over_until = iso(state.passed_over_until)
        return view

    def _health(self, name: str, reachable: bool, note: str) -> pb.ServiceHealth:
        before = self._since.get(name)
        if before is None or before[0] != reachable:
            self._since[name] = (reachable, iso(utc_now()))
        return pb.ServiceHealth(name=name, reachable=reachable, note=note, since=self._since[name][1])

    def _text(self, key: str, **values: object) -> str:
        return self._catalogue.text(self._locale, key, **values)


def _sums(total: ledger.Total) -> dict[str, Any]:
    sums = dataclasses.asdict(total)
    del sums["names"]
    return sums
