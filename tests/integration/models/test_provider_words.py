"""What goes to a provider: usage options, opaque fields, preferences; and what never leaves."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import Any

import pytest

from services.common.wording import load
from services.orchestrator.models.config import Limits
from services.orchestrator.models.contract import (
    AllRoutesFailed,
    ChatMessage,
    ModelRequest,
    Route,
    Served,
    ToolDeclaration,
    WireCall,
)
from tests.fixtures.model_server import ModelServer, call, refuse, shared_prefix, text, turn
from tests.integration.models.conftest import KEY, Asker, MakeAsker, Outcome

WORDS = load("orchestrator")


def continued(outcome: Outcome, result: str = "done") -> list[ChatMessage]:
    """The messages of the next round after a reply with calls."""
    reply = outcome.reply
    calls = [WireCall(one.provider_id, one.name, one.arguments) for one in reply.calls]
    return [
        ChatMessage("user", "Hi"),
        ChatMessage("assistant", reply.text, calls, opaque=reply.opaque),
        *(ChatMessage("tool", result, tool_call_id=one.id) for one in calls),
    ]


@pytest.mark.spec("FLD-011")
async def test_usage_is_asked_for_and_a_refusal_is_remembered(
    asker: Asker, model_server: ModelServer
) -> None:
    model_server.play(refuse(400, "Unrecognized request argument: stream_options"), text("a"), text("b"))
    assert (await asker.ask()).reply.text == "a"
    assert (await asker.ask()).reply.text == "b"
    asked = ["stream_options" in request.body for request in model_server.requests]
    assert asked == [True, False, False]
    assert asker.time.waits == []


@pytest.mark.spec("FLD-011")
async def test_openrouter_is_asked_for_the_price_too(asker: Asker, model_server: ModelServer) -> None:
    await asker.ask(routes=["openrouter:a/b"])
    body = model_server.requests[0].body
    assert body["usage"] == {"include": True}
    assert body["stream_options"] == {"include_usage": True}
    await asker.ask(routes=["ollama:a"])
    assert "usage" not in model_server.requests[1].body


@pytest.mark.spec("TRN-247", "TRN-248")
async def test_what_only_openrouter_knows_goes_only_there(
    make_asker: MakeAsker, model_server: ModelServer
) -> None:
    asker = make_asker(openrouter_providers=["deepinfra", "groq"], openrouter_provider_fallbacks=False)
    for route in ("openrouter:a/b", "ollama:a", "openai:a"):
        await asker.ask(routes=[route], reasoning="low")
    router, local, other = (request.body for request in model_server.requests)
    assert router["provider"] == {"order": ["deepinfra", "groq"], "allow_fallbacks": False}
    assert router["reasoning"] == {"effort": "low"}
    assert not {"provider", "reasoning"} & (set(local) | set(other))
    await make_asker(openrouter_provider_fallbacks=False).ask(routes=["openrouter:a/b"])
    assert not {"provider", "reasoning"} & set(model_server.requests[-1].body)


def detail(**fields: Any) -> dict[str, Any]:
    return {"delta": {"reasoning": "…", "reasoning_details": [fields]}}


REASONING = [
    pytest.param([{"reasoning": "Look…"}], {"reasoning_content": "Look…"}, id="reasoning_content"),
    pytest.param([{"reasoning": "Hm", "field": "reasoning"}], {"reasoning": "Hm"}, id="reasoning"),
    pytest.param(
        [
            detail(type="reasoning.text", text="Le", index=0, format="x"),
            detail(type="reasoning.text", text="t", index=0),
            detail(type="reasoning.text", signature="c2ln", index=0),
            detail(type="reasoning.encrypted", data="AAAA", index=1, id="r1"),
        ],
        {
            "reasoning_details": [
                {"type": "reasoning.text", "text": "Let", "index": 0, "format": "x", "signature": "c2ln"},
                {"type": "reasoning.encrypted", "data": "AAAA", "index": 1, "id": "r1"},
            ]
        },
        id="reasoning_details",
    ),
    pytest.param(
        [
            {"delta": {"thinking_blocks": [{"type": "thinking", "thinking": "Hm"}]}},
            {"delta": {"thinking_blocks": [{"type": "thinking", "thinking": " so", "signature": "c2ln"}]}},
            {"delta": {"thinking_blocks": [{"type": "redacted_thinking", "data": "BBBB"}]}},
        ],
        {
            "thinking_blocks": [
                {"type": "thinking", "thinking": "Hm so", "signature": "c2ln"},
                {"type": "redacted_thinking", "data": "BBBB"},
            ]
        },
        id="thinking_blocks",
    ),
]


@pytest.mark.spec("FLD-001")
@pytest.mark.parametrize(("steps", "fields"), REASONING)
async def test_what_the_provider_needs_back_goes_back_to_it_alone(
    asker: Asker, model_server: ModelServer, steps: list[dict[str, Any]], fields: dict[str, Any]
) -> None:
    model_server.play(turn(*steps, {"call": {"name": "look", "id": "c1"}}))
    first = await asker.ask(routes=["openrouter:deepseek/deepseek-v4"])
    thought = json.dumps(fields)
    assert first.shown == ""
    messages = continued(first)
    for route, returned in [
        ("openrouter:deepseek/deepseek-v5", True),
        ("openrouter:qwen/qwen3", False),
        ("openai:deepseek", False),
    ]:
        await asker.ask(routes=[route], messages=messages)
        assistant = model_server.requests[-1].messages[2]
        expected = fields if returned else dict.fromkeys(fields)
        assert {name: assistant.get(name) for name in fields} == expected
    assert thought not in repr(first.events[:-1])


@pytest.mark.spec("FLD-001")
async def test_a_signature_of_a_call_goes_back_with_that_call(
    asker: Asker, model_server: ModelServer
) -> None:
    signed = {"google": {"thought_signature": "c2ln"}}
    piece = {"index": 0, "id": "c1", "function": {"name": "look", "arguments": "{}"}, "extra_content": signed}
    plain = {"index": 1, "id": "c2", "function": {"name": "look", "arguments": "{}"}}
    model_server.play(turn({"delta": {"tool_calls": [piece, plain]}}))
    first = await asker.ask(routes=["openai:gemini-3"])
    await asker.ask(routes=["openai:gemini-3"], messages=continued(first))
    one, two = model_server.requests[-1].messages[2]["tool_calls"]
    assert one["extra_content"] == signed
    assert "extra_content" not in two


@pytest.mark.spec("FLD-001")
async def test_another_server_of_the_same_provider_gets_nothing_back(
    make_asker: MakeAsker, model_server: ModelServer
) -> None:
    model_server.play(turn({"reasoning": "Hm"}, {"call": {"name": "look"}}))
    first = await make_asker().ask(routes=["openai:m"])
    other_address = model_server.base_url.replace("/v1", "/other/v1")
    elsewhere = make_asker(variables={"OPENAI_BASE_URL": other_address})
    await elsewhere.ask(routes=["openai:m"], messages=continued(first))
    assert "reasoning_content" not in model_server.requests[-1].messages[2]


@pytest.mark.spec("FLD-001")
async def test_reasoning_over_the_limit_is_not_kept(asker: Asker, model_server: ModelServer) -> None:
    model_server.play(turn({"reasoning": "y" * 300_000}, {"call": {"name": "look"}}))
    assert (await asker.ask()).reply.opaque is None


@pytest.mark.spec("FLD-014")
async def test_nothing_unstorable_reaches_a_provider(asker: Asker, model_server: ModelServer) -> None:
    await asker.ask("a\0b\ud83d", system="\ud800", tools=[ToolDeclaration("t", "\0", {"type": "object"})])
    body = model_server.requests[0].body
    assert body["messages"] == [
        {"role": "system", "content": "\ufffd"},
        {"role": "user", "content": "a\ufffdb\ufffd"},
    ]
    assert body["tools"][0]["function"]["description"] == "\ufffd"


@pytest.mark.parametrize("route", ["openai:plain", "openrouter:anthropic/claude"])
async def test_each_request_begins_with_the_bytes_of_the_one_before(
    asker: Asker, model_server: ModelServer, route: str
) -> None:
    messages = [ChatMessage("user", "Begin.")]
    for number in range(8):
        model_server.play(call("look", {"n": number}))
        outcome = await asker.ask(routes=[route], messages=messages)
        messages = [*messages, *continued(outcome, "x" * 50)[1:]]
    for before, after in zip(model_server.requests, model_server.requests[1:], strict=False):
        if "anthropic" not in route:
            assert shared_prefix(before, after) == 1.0
        unmarked = [
            json.dumps(request.messages).replace(', "cache_control": {"type": "ephemeral"}', "")
            for request in (before, after)
        ]
        assert unmarked[1].startswith(unmarked[0][:-1])


@pytest.mark.spec("TRN-323", "TLS-398")
async def test_no_key_appears_in_an_error_an_event_or_connections(
    make_asker: MakeAsker, model_server: ModelServer
) -> None:
    asker = make_asker(
        variables={"OPENAI_BASE_URL": model_server.base_url.replace("//", "//user:hunter2secret@")}
    )
    model_server.script.default = refuse(
        401, f"Incorrect API key {KEY}; Authorization: Bearer {KEY}, not sk-other-000011112222 either"
    )
    outcome = await asker.ask(routes=["openai:first", "openrouter:a/b"])
    assert isinstance(outcome.error, AllRoutesFailed)
    told = [repr(outcome.events), repr(asker.models.connections()), *outcome.error.args]
    told += [outcome.error.sentence(WORDS, locale) for locale in ("en", "vi")]
    for words in told:
        for secret in (KEY, "hunter2secret", "sk-other-000011112222"):
            assert secret not in words
    assert "Incorrect API key ***" in told[-2]


async def test_a_key_that_no_header_can_carry_is_named_not_raised(make_asker: MakeAsker) -> None:
    asker = make_asker(variables={"OPENAI_API_KEY": "sk-chìa\nkhóa"})
    outcome = await asker.ask()
    assert isinstance(outcome.error, AllRoutesFailed)
    sentence = outcome.error.sentence(WORDS, "en")
    assert "openai holds characters" in sentence
    assert "khóa" not in sentence


@pytest.mark.spec("FLD-009")
@pytest.mark.parametrize(
    "slow",
    [
        pytest.param(turn(before={"gate": "never"}), id="no status line"),
        pytest.param(turn({"gate": "never"}), id="no data"),
        pytest.param(turn(*[{"comment": "ping"}, {"delay": 0.1}] * 30), id="comments alone"),
    ],
)
async def test_silence_before_the_first_data_is_a_passing_failure(
    make_asker: MakeAsker, model_server: ModelServer, slow: Any
) -> None:
    asker = make_asker(limits=Limits(first_data_seconds=0.3))
    model_server.play(slow, slow)
    outcome = await asker.ask()
    assert isinstance(outcome.error, AllRoutesFailed)
    assert outcome.error.attempts[0].fault.kind == "timeout"
    assert asker.time.waits == [2.0]


@pytest.mark.spec("FLD-009")
async def test_silence_between_two_pieces_ends_the_reply(
    make_asker: MakeAsker, model_server: ModelServer
) -> None:
    asker = make_asker(limits=Limits(between_data_seconds=0.3))
    model_server.play(turn({"text": "Half", "pieces": 1}, {"comment": "ping"}, {"gate": "never"}))
    outcome = await asker.ask()
    assert outcome.error is not None
    assert "nothing for 0.3 seconds" in outcome.error.sentence(WORDS, "en")


async def test_a_whole_reply_does_not_wait_for_a_server_that_keeps_the_stream_open(
    make_asker: MakeAsker, model_server: ModelServer
) -> None:
    asker = make_asker(limits=Limits(trailer_seconds=0.3))
    done = {"chunk": {"choices": [{"delta": {}, "finish_reason": "stop"}]}}
    model_server.play(turn({"text": "Hi"}, done, {"gate": "never"}))
    assert (await asker.ask()).reply.text == "Hi"


async def test_a_reply_without_end_is_cut_off_at_the_limit(
    make_asker: MakeAsker, model_server: ModelServer
) -> None:
    asker = make_asker(limits=Limits(reply_bytes=200_000))
    model_server.play(turn({"raw": "data: " + "x" * 300_000}), turn({"reasoning": "z" * 300_000}))
    for _ in range(2):
        outcome = await asker.ask()
        assert isinstance(outcome.error, AllRoutesFailed)
        assert outcome.error.attempts[0].fault.key == "models.fault.oversized"


async def test_leaving_a_stream_closes_its_connection(asker: Asker, model_server: ModelServer) -> None:
    model_server.play(turn({"text": "On and on", "pieces": 1}, {"gate": "never"}))
    request = ModelRequest(routes=[Route("openai", "first")], system="", messages=[ChatMessage("user", "Hi")])
    async with aclosing(asker.models.stream(request)) as events:
        async for event in events:
            if isinstance(event, Served):
                break
    await asyncio.wait_for(model_server.requests[0].left.wait(), 30)


async def test_a_hundred_replies_stream_at_once(asker: Asker, model_server: ModelServer) -> None:
    model_server.script.default = turn({"text": "a"}, {"gate": "all"}, {"text": "b"})
    asked = [asyncio.create_task(asker.ask(str(number))) for number in range(100)]
    await model_server.received(100)
    model_server.gate("all").release()
    assert {outcome.reply.text for outcome in await asyncio.gather(*asked)} == {"ab"}
