"""The models of a crew: the one object that everybody who needs a reply is given."""

from __future__ import annotations

import asyncio
import datetime as dt
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from services.orchestrator.models.call import ModelCall
from services.orchestrator.models.config import KEY_NAMES, ModelsConfig, RoutesSource
from services.orchestrator.models.contract import (
    Fault,
    ModelEvent,
    ModelRequest,
    NoUsableRoute,
    Route,
)
from services.orchestrator.models.health import RouteHealth
from services.orchestrator.models.providers.base import Provider
from services.orchestrator.models.registry import make_providers
from services.orchestrator.models.transport import make_client
from services.orchestrator.models.windows import DEFAULT_CONTEXT_TOKENS, Window, Windows


@dataclass(frozen=True, slots=True)
class KeyPresence:
    """Whether a key is there; never the key."""

    name: str
    present: bool


@dataclass(frozen=True, slots=True)
class RouteState:
    """What Connections shows of a route (FLD-010)."""

    route: Route
    usable: bool
    # Why it is not usable, or what went wrong with its last call; None: nothing.
    fault: Fault | None
    passed_over_until: dt.datetime | None


@dataclass(frozen=True, slots=True)
class ModelConnections:
    """The part of Connections that is about models."""

    # Those that can be asked; `fake` only where a route names it.
    providers: Sequence[str]
    routes: Sequence[Route]
    routes_source: RoutesSource
    keys: Sequence[KeyPresence]
    states: Sequence[RouteState]


class Models:
    """Asks models, by any provider, and remembers how they fared.

    Args:
        config: Replaced later with `configure`.
        clock: Seconds that only grow; measures durations and pauses.
        sleep: Waits before a retry.
        now: The time of day, for what people are shown.
    """

    def __init__(
        self,
        config: ModelsConfig,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        now: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._now = now
        self._client = make_client(
            connect_seconds=config.limits.connect_seconds, reply_bytes=config.limits.reply_bytes
        )
        self._health = RouteHealth(clock)
        self._without_usage: set[str] = set()
        self._windows = Windows(clock)
        self._config = config
        self._providers = self._make_providers(config)

    def configure(self, config: ModelsConfig) -> None:
        """Use other keys, routes or prices from the next call on; calls under way end as they began.

        `Limits.connect_seconds` and `Limits.reply_bytes` stay as they were at the start.
        """
        before, self._config = self._config, config
        self._providers = self._make_providers(config)
        if (before.secrets, before.addresses) != (config.secrets, config.addresses):
            self._health.forget()
        if before.addresses != config.addresses:
            self._windows.forget()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Ask the routes of `request` and yield what comes; `Completed` is last.

        Leave it early only through ``aclosing``, so that the connection is closed at once.

        Raises:
            NoUsableRoute: No route can be asked.
            AllRoutesFailed: All were asked in vain.
            BrokenOff: The stream failed after text was shown.
            TooLargeForModel: The prompt is too large.
        """
        routes = self.usable(request.routes)
        if not routes:
            raise self._no_route(request.routes)
        call = ModelCall(
            request=request,
            routes=routes,
            providers=self._providers,
            config=self._config,
            window=lambda route: self.window(route).tokens,
            health=self._health,
            clock=self._clock,
            sleep=self._sleep,
        )
        async with aclosing(call.run()) as events:
            async for event in events:
                yield event

    def usable(self, routes: Sequence[Route]) -> Sequence[Route]:
        """The routes that can be asked, in order; the crew's own when none of `routes` can (TRN-237)."""
        own = [route for route in dict.fromkeys(routes) if self._can_ask(route)]
        return own or [route for route in dict.fromkeys(self._config.routes) if self._can_ask(route)]

    def next_asked(self, routes: Sequence[Route]) -> Route | None:
        """The route that a call on `routes` would ask first now; None when none can be asked."""
        usable = self.usable(routes)
        return next(
            (route for route in usable if not self._health.seconds_left(route)), next(iter(usable), None)
        )

    def window(self, route: Route) -> Window:
        """How much fits into a route's model, as far as is known now (FLD-003)."""
        if told := self._windows.told(route):
            return Window(told, "provider")
        if configured := self._config.window(route):
            return Window(configured, "config")
        return Window(DEFAULT_CONTEXT_TOKENS, "default")

    async def windows(self, routes: Sequence[Route]) -> Mapping[Route, Window]:
        """The windows of those of `routes` that can be asked, the crew's own when none can.

        Reads each provider's model list about once a day; never fails, and makes nobody wait for long.
        """
        usable = self.usable(routes)
        names = dict.fromkeys(route.provider for route in usable)
        await self._windows.learn([self._providers[name] for name in names])
        return {route: self.window(route) for route in usable}

    def connections(self, routes: Sequence[Route] = ()) -> ModelConnections:
        """What Connections shows; holds no secret (TLS-398).

        Args:
            routes: Routes of agents, told besides the crew's own.
        """
        named = list(dict.fromkeys([*self._config.routes, *routes]))
        return ModelConnections(
            providers=[
                name
                for name, provider in self._providers.items()
                if not provider.missing_key
                and (name != "fake" or any(route.provider == name for route in named))
            ],
            routes=tuple(self._config.routes),
            routes_source=self._config.routes_source,
            keys=[KeyPresence(name, bool(self._config.variable(name))) for name in KEY_NAMES],
            states=[self._state(route) for route in named],
        )

    async def close(self) -> None:
        """Close all connections to providers."""
        self._windows.forget()
        await self._client.aclose()

    def _make_providers(self, config: ModelsConfig) -> Mapping[str, Provider]:
        return make_providers(config, self._client, sleep=self._sleep, without_usage=self._without_usage)

    def _can_ask(self, route: Route) -> bool:
        provider = self._providers.get(route.provider)
        return provider is not None and not provider.missing_key

    def _missing(self, routes: Sequence[Route]) -> Sequence[str]:
        providers = (self._providers.get(route.provider) for route in routes)
        return list(dict.fromkeys(p.missing_key for p in providers if p is not None and p.missing_key))

    def _no_route(self, routes: Sequence[Route]) -> NoUsableRoute:
        considered = list(dict.fromkeys([*routes, *self._config.routes]))
        return NoUsableRoute(considered, self._missing(considered))

    def _state(self, route: Route) -> RouteState:
        provider = self._providers.get(route.provider)
        fault = self._health.last_fault(route)
        if provider is None:
            fault = Fault("unknown_provider", "models.fault.unknown_provider", {"provider": route.provider})
        elif provider.missing_key:
            fault = Fault("no_key", "models.fault.no_key", {"variable": provider.missing_key})
        left = self._health.seconds_left(route)
        return RouteState(
            route=route,
            usable=self._can_ask(route),
            fault=fault,
            passed_over_until=self._now() + dt.timedelta(seconds=left) if left else None,
        )
