"""How much fits into each route's model, as providers, the owner or nobody says (FLD-003)."""

from __future__ import annotations

import pytest

from services.orchestrator.models.contract import Route
from tests.fixtures.crew import until
from tests.fixtures.model_server import ModelServer, refuse
from tests.integration.models.conftest import MakeAsker

LISTED, CONFIGURED, ODD = (Route("openai", name) for name in ("listed", "configured", "odd"))


@pytest.mark.spec("FLD-003")
async def test_windows_come_from_the_provider_then_config_then_the_default(
    make_asker: MakeAsker, model_server: ModelServer
) -> None:
    asker = make_asker(context_tokens={LISTED: 5000, CONFIGURED: 32_000, Route("ollama", "*"): 8_000})
    model_server.models = [
        {"id": "listed", "context_length": 64_000},
        {"id": 5},
        {"id": "odd", "context_length": "x"},
    ]
    assert asker.models.window(LISTED).tokens == 5000
    found = await asker.models.windows([LISTED, CONFIGURED, ODD, Route("ollama", "small")])
    assert [(window.tokens, window.source) for window in found.values()] == [
        (64_000, "provider"),
        (32_000, "config"),
        (128_000, "default"),
        (8_000, "config"),
    ]


@pytest.mark.spec("FLD-003")
async def test_a_list_is_read_once_and_an_unreachable_one_again_later(
    make_asker: MakeAsker, model_server: ModelServer
) -> None:
    asker = make_asker()
    assert (await asker.models.windows([LISTED]))[LISTED].source == "default"
    model_server.models = [{"id": "listed", "context_length": 9_000}]
    assert (await asker.models.windows([LISTED]))[LISTED].source == "default"
    await asker.time.sleep(601)

    async def learned() -> bool:
        return (await asker.models.windows([LISTED]))[LISTED].tokens == 9_000

    await until(learned)
    model_server.models = []
    await asker.time.sleep(80_000)
    assert (await asker.models.windows([LISTED]))[LISTED].tokens == 9_000
    assert model_server.lists == 2


@pytest.mark.spec("FLD-003")
async def test_routes_that_cannot_be_asked_have_no_say(make_asker: MakeAsker) -> None:
    asker = make_asker(variables={"OPENROUTER_API_KEY": ""}, routes=[Route("ollama", "own")])
    assert list(await asker.models.windows([Route("openrouter", "x"), LISTED])) == [LISTED]
    assert list(await asker.models.windows([Route("openrouter", "x")])) == [Route("ollama", "own")]


async def test_the_route_passed_over_is_not_the_next_asked(
    make_asker: MakeAsker, model_server: ModelServer
) -> None:
    asker = make_asker()
    routes = [Route("openai", "first"), Route("openai", "second")]
    assert asker.models.next_asked(routes) == routes[0]
    model_server.play(refuse(400), refuse(400))
    for _ in range(2):
        await asker.ask(routes=["openai:first"])
    assert asker.models.next_asked(routes) == routes[1]
    assert asker.models.next_asked(routes[:1]) == routes[0]
    assert asker.models.next_asked([Route("nobody", "x")]) == Route("openai", "first")
