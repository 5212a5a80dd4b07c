"""Which route is asked, when again, and what is said of it."""

from __future__ import annotations

import datetime as dt
import email.utils
from collections import deque

import pytest

from services.common.wording import load
from services.orchestrator.models.config import ModelsConfig, Price
from services.orchestrator.models.contract import (
    AllRoutesFailed,
    BrokenOff,
    Completed,
    NoUsableRoute,
    Route,
    Started,
    TooLargeForModel,
)
from tests.fixtures.model_server import ModelServer, Rule, Turn, refuse, text, turn
from tests.integration.models.conftest import NOON, Asker, MakeAsker

FIRST, SECOND = Route("openai", "first"), Route("openai", "second")
BOTH = ("openai:first", "openai:second")
WORDS = load("orchestrator")


@pytest.mark.spec("TRN-243", "TRN-245")
@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 529])
async def test_a_passing_status_is_asked_once_more_after_two_seconds(
    asker: Asker, model_server: ModelServer, status: int
) -> None:
    model_server.play(refuse(status, "later"), text("Now."))
    outcome = await asker.ask()
    assert outcome.reply.text == "Now."
    assert asker.time.waits == [2.0]
    assert outcome.given_up == []
    assert outcome.of(Started) == [Started(FIRST)]
    assert [request.body["model"] for request in model_server.requests] == ["first", "first"]


@pytest.mark.spec("TRN-244", "TRN-238", "TRN-240", "TRN-241")
@pytest.mark.parametrize("status", [301, 400, 401, 402, 403, 404, 422])
async def test_other_statuses_go_to_the_next_route_at_once(
    asker: Asker, model_server: ModelServer, status: int
) -> None:
    model_server.play(refuse(status, "no"), text("From the second."))
    outcome = await asker.ask(routes=BOTH)
    assert outcome.reply.route == SECOND
    assert asker.time.waits == []
    (given_up,) = outcome.given_up
    assert (given_up.route, given_up.next_route, given_up.error.status) == (FIRST, SECOND, status)
    assert outcome.of(Started) == [Started(FIRST), Started(SECOND)]
    assert [request.body["model"] for request in model_server.requests] == ["first", "second"]


@pytest.mark.spec("TRN-245", "TRN-241")
async def test_a_second_failure_falls_to_the_next_route_with_the_whole_duration(
    asker: Asker, model_server: ModelServer
) -> None:
    model_server.play(refuse(503), refuse(503), text("From the second."))
    outcome = await asker.ask(routes=BOTH)
    assert outcome.reply.text == "From the second."
    (given_up,) = outcome.given_up
    assert given_up.ms == 2000
    assert len(model_server.requests) == 3


@pytest.mark.spec("TRN-242")
async def test_when_every_route_fails_all_are_named_with_their_reason(
    asker: Asker, model_server: ModelServer
) -> None:
    model_server.play(refuse(402, "no credit left"), refuse(400, "bad"))
    outcome = await asker.ask(routes=BOTH)
    assert isinstance(outcome.error, AllRoutesFailed)
    assert [attempt.route for attempt in outcome.error.attempts] == [FIRST, SECOND]
    assert [event.next_route for event in outcome.given_up] == [SECOND, None]
    for locale in ("en", "vi"):
        sentence = outcome.error.sentence(WORDS, locale)
        assert "openai:first" in sentence
        assert "no credit left" in sentence
        assert "openai:second" in sentence


@pytest.mark.spec("TRN-239")
async def test_after_text_no_second_route_is_asked(asker: Asker, model_server: ModelServer) -> None:
    model_server.play(turn({"text": "Half of", "pieces": 1}, {"drop": True}), text("never"))
    outcome = await asker.ask(routes=BOTH)
    assert isinstance(outcome.error, BrokenOff)
    assert (outcome.error.partial_text, outcome.error.had_calls) == ("Half of", False)
    assert outcome.error.abandoned == (FIRST,)
    assert len(model_server.requests) == 1
    assert "openai:first" in outcome.error.sentence(WORDS, "en")


@pytest.mark.spec("TRN-246", "TRN-267")
@pytest.mark.parametrize(
    ("first", "abandoned"),
    [(refuse(503), ()), (turn({"reasoning": "Hm"}, {"drop": True}), (FIRST,))],
    ids=["refused before the first chunk", "served and broken"],
)
async def test_only_a_served_attempt_counts_as_abandoned(
    asker: Asker, model_server: ModelServer, first: Turn, abandoned: tuple[Route, ...]
) -> None:
    model_server.play(first, text("Now."))
    assert (await asker.ask()).reply.abandoned == abandoned


@pytest.mark.spec("FLD-010")
@pytest.mark.parametrize(
    ("header", "waits"),
    [("7", [7.0]), ("0", [0.0]), ("30", [30.0]), ("31", []), ("soon", [2.0]), ("-5", [2.0])],
)
async def test_retry_after_is_kept_up_to_thirty_seconds(
    asker: Asker, model_server: ModelServer, header: str, waits: list[float]
) -> None:
    model_server.play(refuse(429, headers={"retry-after": header}), text("Then."))
    outcome = await asker.ask(routes=BOTH)
    assert asker.time.waits == waits
    assert outcome.reply.route == (FIRST if waits else SECOND)


@pytest.mark.spec("FLD-010")
async def test_retry_after_may_be_a_date(asker: Asker, model_server: ModelServer) -> None:
    later = email.utils.format_datetime(dt.datetime.now(dt.UTC) + dt.timedelta(hours=1), usegmt=True)
    model_server.play(refuse(503, headers={"retry-after": later}), text("Then."))
    outcome = await asker.ask(routes=BOTH)
    assert asker.time.waits == []
    assert outcome.reply.route == SECOND


@pytest.mark.spec("FLD-010")
async def test_a_route_that_fails_twice_is_passed_over_and_comes_back(
    asker: Asker, model_server: ModelServer
) -> None:
    model_server.script.rules.append(Rule(turns=deque([Turn(status=402)]), model="first"))
    for _ in range(2):
        await asker.ask(routes=BOTH)
    assert len(model_server.requests) == 4
    outcome = await asker.ask(routes=BOTH)
    assert [request.body["model"] for request in model_server.requests[4:]] == ["second"]
    (given_up,) = outcome.given_up
    assert (given_up.error.kind, given_up.ms, given_up.next_route) == ("passed_over", 0, SECOND)
    (state, _) = asker.models.connections([FIRST, SECOND]).states
    assert state.passed_over_until == NOON + dt.timedelta(seconds=60)
    pauses = []
    for _ in range(6):
        (state, _) = asker.models.connections([FIRST, SECOND]).states
        assert state.passed_over_until is not None
        pause = (state.passed_over_until - asker.time.now()).total_seconds()
        pauses.append(pause)
        asker.time.seconds += pause
        await asker.ask(routes=BOTH)
    assert pauses == [60, 120, 240, 480, 600, 600]
    model_server.script.rules.clear()
    asker.time.seconds += 600
    assert (await asker.ask(routes=BOTH)).reply.route == FIRST
    (state, _) = asker.models.connections([FIRST, SECOND]).states
    assert (state.passed_over_until, state.fault) == (None, None)


async def test_the_only_route_is_asked_even_while_it_is_passed_over(
    asker: Asker, model_server: ModelServer
) -> None:
    model_server.play(refuse(402), refuse(402), text("Paid."))
    for _ in range(2):
        assert isinstance((await asker.ask()).error, AllRoutesFailed)
    outcome = await asker.ask()
    assert outcome.reply.text == "Paid."
    assert outcome.given_up == []


async def test_a_route_passed_over_is_asked_last_when_all_others_fail(
    asker: Asker, model_server: ModelServer
) -> None:
    model_server.play(refuse(402), text("a"), refuse(402), text("b"))
    for _ in range(2):
        await asker.ask(routes=BOTH)
    model_server.play(refuse(400), text("Back."))
    outcome = await asker.ask(routes=BOTH)
    assert outcome.reply.route == FIRST
    told = [(event.route, event.next_route) for event in outcome.given_up]
    assert told == [(FIRST, SECOND), (SECOND, FIRST)]


@pytest.mark.spec("TRN-237")
async def test_routes_without_a_key_are_skipped_and_then_the_crew_s_are_used(
    make_asker: MakeAsker, model_server: ModelServer
) -> None:
    asker = make_asker(variables={"OPENROUTER_API_KEY": ""}, routes=[Route("openai", "shared")])
    outcome = await asker.ask(routes=["openrouter:a/b", "openai:own"])
    assert outcome.reply.route == Route("openai", "own")
    assert outcome.given_up == []
    outcome = await asker.ask(routes=["openrouter:a/b", "nobody:x"])
    assert outcome.reply.route == Route("openai", "shared")


@pytest.mark.spec("TRN-237", "TRN-250")
async def test_without_any_usable_route_the_missing_keys_are_named(make_asker: MakeAsker) -> None:
    none = {"OPENROUTER_API_KEY": "", "OPENAI_API_KEY": "", "OPENAI_BASE_URL": ""}
    asker = make_asker(variables=none, routes=[Route("openrouter", "a/b")])
    outcome = await asker.ask(routes=["openai:x"])
    assert isinstance(outcome.error, NoUsableRoute)
    for locale in ("en", "vi"):
        sentence = outcome.error.sentence(WORDS, locale)
        assert "OPENROUTER_API_KEY" in sentence
        assert "OPENAI_API_KEY" in sentence
    assert outcome.events == []


@pytest.mark.spec("TRN-249", "TLS-419", "TLS-420")
async def test_ollama_is_always_there_and_nothing_listening_is_a_failed_route(
    make_asker: MakeAsker, model_server: ModelServer
) -> None:
    asker = make_asker(variables={"OLLAMA_BASE_URL": "http://127.0.0.1:9/v1"})
    outcome = await asker.ask(routes=["ollama:qwen3:8b", "openai:second"])
    assert outcome.reply.route == SECOND
    (given_up,) = outcome.given_up
    assert given_up.error.kind == "transport"
    assert "127.0.0.1:9" in given_up.error.sentence(WORDS, "en")
    assert "ollama" in asker.models.connections().providers


@pytest.mark.spec("TLS-421", "TRN-259")
async def test_an_own_price_counts_where_the_provider_says_none(
    make_asker: MakeAsker, model_server: ModelServer
) -> None:
    tokens = {"prompt_tokens": 1_000_000, "completion_tokens": 100_000}
    asker = make_asker(prices={Route("openai", "first"): Price(2.0, 10.0), Route("ollama", "*"): Price(0, 0)})
    model_server.script.default = text("Hi", usage=tokens)
    assert (await asker.ask()).reply.cost_usd == pytest.approx(3.0)
    assert (await asker.ask(routes=["ollama:any"])).reply.cost_usd == 0.0
    assert (await asker.ask(routes=["openai:other"])).reply.cost_usd is None


@pytest.mark.parametrize(
    "refusal",
    [
        refuse(413, "Request Entity Too Large"),
        refuse(400, "This model's maximum context length is 8192 tokens. You requested 9000 tokens."),
        refuse(400, "prompt is too long: 213462 tokens > 200000 maximum"),
        refuse(400, "the request exceeds the available context size, try increasing it"),
        Turn(status=400, body={"error": {"message": "Bad", "code": "context_length_exceeded"}}),
        turn({"error": {"code": 400, "message": "input exceeds the context window of this model"}}),
    ],
)
async def test_a_refusal_for_size_is_told_apart_and_not_repeated(
    asker: Asker, model_server: ModelServer, refusal: Turn
) -> None:
    model_server.play(refusal)
    outcome = await asker.ask(routes=BOTH)
    assert isinstance(outcome.error, TooLargeForModel)
    assert outcome.error.route == FIRST
    assert len(model_server.requests) == 1
    assert asker.models.connections([FIRST]).states[0].fault is None


@pytest.mark.parametrize("message", ["Too many tokens per minute", "Unsupported parameter: top_k"])
async def test_other_refusals_are_not_taken_for_size(
    asker: Asker, model_server: ModelServer, message: str
) -> None:
    model_server.play(refuse(400, message))
    assert isinstance((await asker.ask()).error, AllRoutesFailed)


@pytest.mark.spec("FLD-015")
async def test_a_request_over_the_limit_is_not_sent(asker: Asker, model_server: ModelServer) -> None:
    fits = await asker.ask("x" * 3_900_000)
    assert isinstance(fits.events[-1], Completed)
    outcome = await asker.ask("x" * 4_000_000)
    assert isinstance(outcome.error, TooLargeForModel)
    assert outcome.error.limit_bytes == 4_000_000
    assert "4,000,000" in outcome.error.sentence(WORDS, "en")
    assert len(model_server.requests) == 1


async def test_a_change_of_key_holds_from_the_next_call_and_forgives_routes(
    make_asker: MakeAsker, model_server: ModelServer
) -> None:
    asker = make_asker()
    model_server.play(refuse(401), refuse(401), text("Welcome."))
    for _ in range(2):
        await asker.ask()
    assert asker.models.connections().states[0].passed_over_until
    asker.models.configure(
        ModelsConfig(
            routes=[FIRST],
            variables={"OPENAI_BASE_URL": model_server.base_url, "OPENAI_API_KEY": "sk-another-key"},
        )
    )
    assert asker.models.connections().states[0].passed_over_until is None
    await asker.ask()
    assert model_server.requests[-1].headers["authorization"] == "Bearer sk-another-key"
