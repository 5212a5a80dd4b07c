from typing import Any

import orjson
import pytest

from services.orchestrator.models.contract import ChatMessage, ModelRequest, Route, ToolDeclaration, WireCall
from services.orchestrator.models.providers.body import request_body
from services.orchestrator.models.providers.dialect import Dialect, ollama, openai, openrouter

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}


def body_of(dialect: Dialect, model: str = "m", **fields: Any) -> dict[str, Any]:
    request = ModelRequest(**{"routes": [], "system": "", "messages": [ChatMessage("user", "Hi")], **fields})
    data = request_body(request, model, dialect, origin="me", ask_usage=True, limit=4_000_000)
    parsed: dict[str, Any] = orjson.loads(data)
    return parsed


@pytest.mark.parametrize(
    ("text", "provider", "model"),
    [
        ("openrouter:deepseek/deepseek-v4-flash", "openrouter", "deepseek/deepseek-v4-flash"),
        ("ollama:qwen3:8b", "ollama", "qwen3:8b"),
        (" openai : gpt-x ", "openai", "gpt-x"),
    ],
)
@pytest.mark.spec("TRN-235")
def test_a_route_is_split_at_its_first_colon(text: str, provider: str, model: str) -> None:
    route = Route.parse(text)
    assert (route.provider, route.model) == (provider, model)
    assert Route.parse(str(route)) == route


@pytest.mark.spec("TRN-235")
@pytest.mark.parametrize("text", ["", "openai", ":x", "openai:", "openai: "])
def test_half_a_route_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="provider:model"):
        Route.parse(text)


@pytest.mark.spec("PIP-001", "PIP-115")
@pytest.mark.parametrize(
    ("strict", "dialect", "expected"),
    [
        ({"schema": {"type": "object"}}, openai("", "k"), {"strict": True, "parameters": {"type": "object"}}),
        (False, openai("", "k"), {"strict": False, "parameters": SCHEMA}),
        (None, openai("", "k"), {"parameters": SCHEMA}),
        ({"grammar": "root ::= x"}, openai("", "k"), {"parameters": SCHEMA}),
        ({"schema": {"type": "object"}}, ollama(""), {"parameters": SCHEMA}),
        (False, openrouter("", "k", (), True), {"parameters": SCHEMA}),
    ],
)
def test_a_provider_gets_only_the_fields_of_a_tool_that_it_knows(
    strict: Any, dialect: Dialect, expected: dict[str, Any]
) -> None:
    tool = ToolDeclaration("read", "Reads.", SCHEMA, strict)
    (written,) = body_of(dialect, tools=[tool])["tools"]
    assert written == {"type": "function", "function": {"name": "read", "description": "Reads.", **expected}}


def test_a_call_goes_back_under_a_name_that_providers_take() -> None:
    calls = [
        WireCall("a", "functions.fly to/moon", "{}"),
        WireCall("b", "", "{}"),
        WireCall("c", "x" * 90, "{}"),
    ]
    messages = [
        ChatMessage("user", "Hi"),
        ChatMessage("assistant", "", calls),
        *(ChatMessage("tool", "none", tool_call_id=call.id) for call in calls),
    ]
    written = body_of(ollama(""), messages=messages)["messages"]
    names = [call["function"]["name"] for call in written[1]["tool_calls"]]
    assert names == ["functions_fly_to_moon", "unknown", "x" * 64]
    assert written[1]["content"] is None
    assert [message.get("tool_call_id") for message in written[2:]] == ["a", "b", "c"]


def test_at_most_four_cache_markers_stand_where_the_prompt_is_stable() -> None:
    tools = [ToolDeclaration(name, "", SCHEMA) for name in ("a", "b")]
    messages = [
        ChatMessage("user", "one"),
        ChatMessage("assistant", "", [WireCall("c", "a", "{}")]),
        ChatMessage("tool", "result", tool_call_id="c"),
        ChatMessage("user", "two"),
    ]
    fields: dict[str, Any] = {
        "system": "Rules.Today is Monday.",
        "stable_system_chars": 6,
        "messages": messages,
        "tools": tools,
    }
    router = openrouter("", "k", (), True)
    body = body_of(router, "anthropic/claude-x", **fields)
    assert orjson.dumps(body).count(b"cache_control") == 4
    assert "cache_control" in body["tools"][-1]
    stable, changing = body["messages"][0]["content"]
    assert (stable["text"], "cache_control" in stable) == ("Rules.", True)
    assert (changing["text"], "cache_control" in changing) == ("Today is Monday.", False)
    marked = [
        message["role"]
        for message in body["messages"][1:]
        if message["content"] and "cache_control" in message["content"][0]
    ]
    assert marked == ["tool", "user"]
    assert b"cache_control" not in orjson.dumps(body_of(router, "deepseek/v4", **fields))


def test_a_limit_of_output_is_sent_when_asked_for() -> None:
    assert body_of(ollama(""), max_output_tokens=50)["max_tokens"] == 50
    assert "max_tokens" not in body_of(ollama(""))
