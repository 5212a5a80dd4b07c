"""A `Models` against the model server, with a clock that only waits move."""

from __future__ import annotations

import datetime as dt
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import pytest

from services.orchestrator.models.config import Limits, ModelsConfig
from services.orchestrator.models.contract import (
    ChatMessage,
    Completed,
    ModelError,
    ModelEvent,
    ModelRequest,
    Reply,
    Route,
    RouteGivenUp,
    TextDelta,
)
from services.orchestrator.models.facade import Models
from tests.fixtures.model_server import ModelServer
from tests.fixtures.model_server.fixture import model_server

__all__ = ["model_server"]

KEY = "sk-test-0123456789abcdef"
NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)


class Time:
    """A clock that stands still but for the waits it is asked for, which take no time."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        self.waits: list[float] = []

    def clock(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.seconds += seconds

    def now(self) -> dt.datetime:
        return NOON + dt.timedelta(seconds=self.seconds - 1000)


@dataclass
class Outcome:
    """What one call gave."""

    events: list[ModelEvent] = field(default_factory=list)
    error: ModelError | None = None

    @property
    def reply(self) -> Reply:
        assert self.error is None, self.error
        last = self.events[-1]
        assert isinstance(last, Completed)
        return last.reply

    @property
    def shown(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TextDelta))

    @property
    def given_up(self) -> list[RouteGivenUp]:
        return [event for event in self.events if isinstance(event, RouteGivenUp)]

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


class Asker:
    """Asks a `Models` and keeps what came."""

    def __init__(self, models: Models, time: Time) -> None:
        self.models = models
        self.time = time

    async def ask(
        self,
        text: str = "Hi",
        *,
        routes: Sequence[str] = ("openai:first",),
        messages: Sequence[ChatMessage] = (),
        **fields: Any,
    ) -> Outcome:
        request = ModelRequest(
            routes=[Route.parse(route) for route in routes],
            system=fields.pop("system", "You help."),
            messages=messages or [ChatMessage("user", text)],
            **fields,
        )
        outcome = Outcome()
        try:
            async with aclosing(self.models.stream(request)) as events:
                async for event in events:
                    outcome.events.append(event)
        except ModelError as error:
            outcome.error = error
        return outcome


MakeAsker = Callable[..., Asker]


@pytest.fixture
async def make_asker(model_server: ModelServer) -> AsyncIterator[MakeAsker]:
    """Makes askers whose providers all lead to the model server."""
    made: list[Models] = []

    def make(*, variables: Mapping[str, str] | None = None, **config: Any) -> Asker:
        time = Time()
        addresses = {
            "OPENAI_BASE_URL": model_server.base_url,
            "OPENROUTER_BASE_URL": model_server.base_url,
            "OLLAMA_BASE_URL": model_server.base_url,
            "OPENAI_API_KEY": KEY,
            "OPENROUTER_API_KEY": KEY,
        }
        models = Models(
            ModelsConfig(
                routes=config.pop("routes", [Route("openai", "first")]),
                variables=addresses | (variables or {}),
                limits=config.pop("limits", Limits()),
                **config,
            ),
            clock=time.clock,
            sleep=time.sleep,
            now=time.now,
        )
        made.append(models)
        return Asker(models, time)

    yield make
    for models in made:
        await models.close()


@pytest.fixture
def asker(make_asker: MakeAsker) -> Asker:
    """An asker with everything configured."""
    return make_asker()
