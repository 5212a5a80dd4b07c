"""Reading one chunk of a stream as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import orjson

from services.orchestrator.models.assembly import Chunk


class NotAChunk(ValueError):
    """Data that is no JSON object."""


def read_chunk(data: str | bytes) -> Chunk:
    """Parse the data of one event.

    Numbers in arguments that a server sends as an object keep their digits as written.

    Raises:
        NotAChunk: It is no JSON object.
    """
    try:
        chunk = orjson.loads(data)
    except orjson.JSONDecodeError:
        # A character cut into two chunks leaves half an escape, which only the lenient parser takes.
        chunk = _lenient(data)
    if not isinstance(chunk, dict):
        raise NotAChunk
    if _has_object_arguments(chunk):
        exact = json.loads(data, parse_float=orjson.Fragment, parse_int=orjson.Fragment)
        for function, source in zip(_functions(chunk), _functions(exact), strict=True):
            function["arguments"] = source.get("arguments")
    return chunk


def has_finished(chunk: Chunk) -> bool:
    """Whether the chunk says that the reply is whole."""
    choices = chunk.get("choices")
    return isinstance(choices, list) and any(
        isinstance(choice, Mapping) and not choice.get("index") and bool(choice.get("finish_reason"))
        for choice in choices
    )


def _lenient(data: str | bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise NotAChunk from None


def _functions(chunk: Any) -> list[dict[str, Any]]:
    """The function parts of all calls of a chunk, in order."""
    found = []
    choices = chunk.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        delta = (choice.get("delta") or choice.get("message")) if isinstance(choice, dict) else None
        calls = delta.get("tool_calls") if isinstance(delta, dict) else None
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict):
                function = call.get("function")
                found.append(function if isinstance(function, dict) else call)
    return found


def _has_object_arguments(chunk: Any) -> bool:
    return any(isinstance(function.get("arguments"), dict | list) for function in _functions(chunk))
