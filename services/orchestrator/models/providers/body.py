"""The JSON body of a chat-completions request."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

from services.common.storable import storable
from services.orchestrator.models.contract import ChatMessage, ModelRequest, ToolDeclaration
from services.orchestrator.models.opaque import returned_fields
from services.orchestrator.models.providers.base import RequestTooLarge
from services.orchestrator.models.providers.dialect import Dialect

_CACHE_MARKER = {"type": "ephemeral"}
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")


def request_body(
    request: ModelRequest, model: str, dialect: Dialect, *, origin: str, ask_usage: bool, limit: int
) -> bytes:
    """Write the body.

    The bytes of the messages depend on the messages alone, so that a longer conversation's request
    begins with the bytes of the shorter one's.

    Args:
        origin: Whose opaque fields go back (FLD-001).
        ask_usage: Whether to ask for token counts (FLD-011).
        limit: Most bytes (FLD-015).

    Raises:
        RequestTooLarge: The body passes `limit`.
    """
    marks = dialect.marks_cache(model)
    body: dict[str, Any] = {
        "model": model,
        "messages": _messages(request, origin, marks),
        "stream": True,
        **dialect.extra,
    }
    if request.tools:
        body["tools"] = [_tool(tool, dialect) for tool in request.tools]
        if marks:
            body["tools"][-1]["cache_control"] = _CACHE_MARKER
    if request.reasoning and dialect.sends_reasoning:
        body["reasoning"] = {"effort": request.reasoning}
    if request.max_output_tokens is not None:
        body["max_tokens"] = request.max_output_tokens
    if ask_usage:
        body["stream_options"] = {"include_usage": True}
        if dialect.asks_price:
            body["usage"] = {"include": True}
    data = _dumps(body)
    if len(data) > limit:
        raise RequestTooLarge(len(data), limit)
    return data


def _messages(request: ModelRequest, origin: str, marks: bool) -> list[dict[str, Any]]:
    written = [_message(message, origin) for message in request.messages]
    system = request.system
    if not marks:
        return [*([{"role": "system", "content": system}] if system else []), *written]
    # Every text is written as a part, so that a marker that moves on changes no earlier shape.
    with_text = [message for message in written if message["content"]]
    for message in with_text:
        message["content"] = [_part(message["content"])]
    for message in with_text[-2:]:
        message["content"][0]["cache_control"] = _CACHE_MARKER
    stable = len(system) if request.stable_system_chars is None else request.stable_system_chars
    parts = [_part(text) for text in (system[:stable], system[stable:]) if text]
    if not parts:
        return written
    if stable:
        parts[0]["cache_control"] = _CACHE_MARKER
    return [{"role": "system", "content": parts}, *written]


def _message(message: ChatMessage, origin: str) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id or "", "content": message.content}
    written: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        # Some servers refuse an empty text beside calls, all take null.
        written["content"] = message.content or None
        calls: list[dict[str, Any]] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": _callable_name(call.name), "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
        written["tool_calls"] = calls
        if message.opaque:
            fields, extras = returned_fields(message.opaque, origin)
            written.update(fields)
            for call, extra in zip(calls, extras, strict=False):
                if extra is not None:
                    call["extra_content"] = extra
    return written


def _callable_name(name: str) -> str:
    """A name that providers take back: a model may have invented one that they refuse."""
    return _NOT_IN_A_NAME.sub("_", name)[:64] or "unknown"


def _tool(tool: ToolDeclaration, dialect: Dialect) -> dict[str, Any]:
    function: dict[str, Any] = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    if dialect.strict_tools and tool.strict is not None:
        if tool.strict is False:
            function["strict"] = False
        elif isinstance(schema := tool.strict.get("schema"), Mapping):
            function["strict"] = True
            function["parameters"] = schema
    return {"type": "function", "function": function}


def _part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _dumps(body: Mapping[str, Any]) -> bytes:
    try:
        data = orjson.dumps(body)
    except TypeError:
        # A lone surrogate somewhere (FLD-014).
        return orjson.dumps(_storable(body))
    # The escape of NUL, or text that only looks like it: cleaning the latter changes nothing.
    return orjson.dumps(_storable(body)) if b"\\u0000" in data else data


def _storable(value: Any) -> Any:
    match value:
        case str():
            return storable(value).text
        case Mapping():
            return {storable(str(name)).text: _storable(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_storable(inner) for inner in value]
        case _:
            return value
