"""How much fits into the model of each route, and who says so (FLD-003)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from services.orchestrator.models.contract import Route
from services.orchestrator.models.providers.base import Provider

DEFAULT_CONTEXT_TOKENS = 128_000
# Lists of models change rarely; a list that was empty may only have been unreachable.
_KEPT_SECONDS = 86_400.0
_RETRY_SECONDS = 600.0
# A turn does not wait longer for the first list of a provider.
_PATIENCE_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Window:
    """How many tokens fit into a route's model."""

    tokens: int
    source: Literal["provider", "config", "default"]


class Windows:
    """What the providers' model lists say.

    Args:
        clock: Seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._told: dict[Route, int] = {}
        # When the list of a provider is to be asked for again.
        self._due: dict[str, float] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}

    async def learn(self, providers: Iterable[Provider]) -> None:
        """Ask for lists that are due; never fails, and waits only for those never heard before."""
        first: list[asyncio.Task[None]] = []
        for provider in providers:
            name = provider.name
            known = name in self._due
            if name not in self._asking and self._due.get(name, 0.0) <= self._clock():
                self._asking[name] = asyncio.create_task(self._ask(provider), name=f"windows of {name}")
            if not known and name in self._asking:
                first.append(self._asking[name])
        if first:
            await asyncio.wait(first, timeout=_PATIENCE_SECONDS)

    def told(self, route: Route) -> int | None:
        """The tokens that the provider's list gives for a route."""
        return self._told.get(route)

    def forget(self) -> None:
        """Start anew, after addresses changed."""
        for task in self._asking.values():
            task.cancel()
        self._asking.clear()
        self._told.clear()
        self._due.clear()

    async def _ask(self, provider: Provider) -> None:
        mine = asyncio.current_task()
        found: dict[str, int] = {}
        try:
            found = await provider.context_windows()
        finally:
            if self._asking.get(provider.name) is mine:
                del self._asking[provider.name]
                self._due[provider.name] = self._clock() + (_KEPT_SECONDS if found else _RETRY_SECONDS)
                self._told |= {Route(provider.name, model): tokens for model, tokens in found.items()}
