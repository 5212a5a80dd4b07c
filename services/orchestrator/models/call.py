"""One model call: its routes in order, one retry for what passes, never a second try after text."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

import structlog

from services.orchestrator.models import faults
from services.orchestrator.models.assembly import Assembly, MalformedChunk, Text, Thought
from services.orchestrator.models.call_pieces import CallPiece
from services.orchestrator.models.config import ModelsConfig
from services.orchestrator.models.contract import (
    AllRoutesFailed,
    Attempt,
    BrokenOff,
    CallDelta,
    Completed,
    Fault,
    ModelEvent,
    ModelRequest,
    Reply,
    Route,
    RouteGivenUp,
    Served,
    Started,
    TextDelta,
    Thinking,
    TooLargeForModel,
)
from services.orchestrator.models.faults import AttemptFailed
from services.orchestrator.models.health import RouteHealth
from services.orchestrator.models.prices import Lengths, cost_of, read_usage
from services.orchestrator.models.providers.base import Provider, RequestTooLarge

RETRY_SECONDS = 2.0
# A provider that asks for a longer pause is not waited for (FLD-010).
LONGEST_PAUSE_SECONDS = 30.0

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class ModelCall:
    """The state of one call.

    Args:
        routes: Those to ask, in order.
        window: The tokens that fit into a route's model.
    """

    request: ModelRequest
    routes: Sequence[Route]
    providers: Mapping[str, Provider]
    config: ModelsConfig
    window: Callable[[Route], int]
    health: RouteHealth
    clock: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]
    _number: int = 0
    _thought: bool = False
    _failed: list[Attempt] = field(default_factory=list)
    _abandoned: list[Route] = field(default_factory=list)

    async def run(self) -> AsyncGenerator[ModelEvent, None]:
        """Ask the routes in order until one answers.

        Raises:
            AllRoutesFailed: None did, and no text was shown.
            BrokenOff: The stream failed after text was shown.
            TooLargeForModel: The prompt is too large.
        """
        line = list(self.routes)
        waiting = [route for route in line if self.health.seconds_left(route) > 0]
        if len(waiting) < len(line):
            # Asked last, so that a crew whose every other route fails still gets an answer.
            line = [route for route in line if route not in waiting] + waiting
            for position, route in enumerate(waiting):
                following = [*waiting[position + 1 :], *line][0]
                yield self._given_up(route, self._passed_over(route), following, 0)
        for position, route in enumerate(line):
            started = self.clock()
            yield Started(route)
            failed: AttemptFailed | None = None
            async with aclosing(self._ask_twice(route, started)) as events:
                try:
                    async for event in events:
                        yield event
                except AttemptFailed as error:
                    failed = error
            if failed is None:
                return
            ms = self._since(started)
            self._failed.append(Attempt(route, failed.fault, ms))
            following_route = line[position + 1] if position + 1 < len(line) else None
            yield self._given_up(route, failed.fault, following_route, ms)
        raise AllRoutesFailed(self._failed, abandoned=self._abandoned)

    async def _ask_twice(self, route: Route, started: float) -> AsyncGenerator[ModelEvent, None]:
        """Ask one route, and once more after a pause when the failure is a passing one (TRN-243)."""
        try:
            async with aclosing(self._ask(route, started)) as events:
                async for event in events:
                    yield event
            return
        except AttemptFailed as failed:
            pause = RETRY_SECONDS if failed.retry_after is None else failed.retry_after
            if not failed.passing or pause > LONGEST_PAUSE_SECONDS:
                self.health.failed(route, failed.fault)
                raise
        await self.sleep(pause)
        try:
            async with aclosing(self._ask(route, started)) as events:
                async for event in events:
                    yield event
        except AttemptFailed as failed:
            self.health.failed(route, failed.fault)
            raise

    async def _ask(self, route: Route, started: float) -> AsyncGenerator[ModelEvent, None]:
        """Send the request once and turn the stream into events; `Completed` comes last."""
        provider = self.providers.get(route.provider)
        if provider is None:
            raise AttemptFailed(
                Fault("unknown_provider", "models.fault.unknown_provider", {"provider": route.provider})
            )
        self._number += 1
        attempt = _Attempt(self._number, self.clock())
        try:
            async with aclosing(provider.chunks(self.request, route.model)) as chunks:
                async for chunk in chunks:
                    if not attempt.served:
                        attempt.served = True
                        yield Served(route)
                    for piece in attempt.assembly.feed(chunk):
                        if event := self._event(piece, attempt):
                            yield event
        except RequestTooLarge as error:
            raise self._too_large(route, error) from None
        except (AttemptFailed, MalformedChunk) as error:
            failed = faults.malformed(str(route)) if isinstance(error, MalformedChunk) else error
            for event in self._abandon(route, attempt, failed.fault, started):
                yield event
            raise failed from None
        for piece in attempt.assembly.flush():
            if event := self._event(piece, attempt):
                yield event
        self.health.succeeded(route)
        yield Completed(self._reply(route, provider, attempt))

    def _event(self, piece: Thought | Text | CallPiece, attempt: _Attempt) -> ModelEvent | None:
        if attempt.first_ms is None:
            attempt.first_ms = self._since(attempt.started)
        match piece:
            case Text(text):
                attempt.shown = True
                return TextDelta(text)
            case CallPiece(position, name, chunk):
                attempt.drawn.add(position)
                return CallDelta(position, name, chunk, attempt.number)
            case Thought():
                first, self._thought = not self._thought, True
                return Thinking() if first else None

    def _abandon(self, route: Route, attempt: _Attempt, fault: Fault, started: float) -> Sequence[ModelEvent]:
        """Account for a failed attempt; the events that call off what was drawn of its calls.

        Raises:
            BrokenOff: Text was shown.
            TooLargeForModel: The model refused the prompt for its size.
        """
        if attempt.served:
            self._abandoned.append(route)
        if attempt.shown:
            self.health.failed(route, fault)
            raise BrokenOff(
                route=route,
                fault=fault,
                partial_text=attempt.assembly.text,
                had_calls=attempt.assembly.has_calls,
                ms=self._since(started),
                abandoned=self._abandoned,
            )
        if fault.kind == "overflow":
            raise TooLargeForModel(fault.key, fault.values, route=route, abandoned=self._abandoned)
        return [CallDelta(position, "", "", attempt.number) for position in sorted(attempt.drawn)]

    def _too_large(self, route: Route, error: RequestTooLarge) -> TooLargeForModel:
        values = {"size": f"{error.size:,}", "limit": f"{error.limit:,}"}
        return TooLargeForModel(
            "models.error.request_too_large",
            values,
            route=route,
            limit_bytes=error.limit,
            abandoned=self._abandoned,
        )

    def _reply(self, route: Route, provider: Provider, attempt: _Attempt) -> Reply:
        result = attempt.assembly.result(provider.origin(route.model))
        usage = read_usage(result.usage)
        price = self.config.price(route)
        lengths = Lengths(
            sent=self.request.chars,
            received=len(result.text) + sum(len(call.name) + len(call.arguments) for call in result.calls),
            largest_output=(price and price.max_output_tokens) or self.window(route),
        )
        cost = cost_of(result.usage, usage, price, lengths)
        return Reply(
            text=result.text,
            calls=result.calls,
            finish_reason=result.finish_reason,
            route=route,
            usage=usage,
            cost_usd=cost.usd,
            cost_estimated=cost.estimated,
            first_token_ms=attempt.first_ms,
            ms=self._since(attempt.started),
            opaque=result.opaque,
            abandoned=tuple(self._abandoned),
            replaced_chars=result.replaced_chars,
        )

    def _given_up(self, route: Route, fault: Fault, following: Route | None, ms: int) -> RouteGivenUp:
        log.warning(
            "route given up",
            route=str(route),
            kind=fault.kind,
            status=fault.status,
            next_route=str(following) if following else None,
            ms=ms,
            agent=self.request.agent_id,
            purpose=self.request.purpose,
        )
        return RouteGivenUp(route, fault, following, ms)

    def _passed_over(self, route: Route) -> Fault:
        seconds = max(1, round(self.health.seconds_left(route)))
        return Fault("passed_over", "models.fault.passed_over", {"seconds": seconds})

    def _since(self, started: float) -> int:
        return max(0, round((self.clock() - started) * 1000))


@dataclass(slots=True)
class _Attempt:
    """One request and what came of it so far."""

    number: int
    started: float
    assembly: Assembly = field(default_factory=Assembly)
    # The provider began to answer.
    served: bool = False
    # Text reached the person.
    shown: bool = False
    drawn: set[int] = field(default_factory=set)
    first_ms: int | None = None
