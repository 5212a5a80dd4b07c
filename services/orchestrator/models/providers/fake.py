"""A provider without a model: it echoes, and calls the tool that a message names (TRN-251..256)."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from typing import Any

import orjson

from services.orchestrator.models.assembly import Chunk
from services.orchestrator.models.contract import Fault, ModelRequest
from services.orchestrator.models.faults import AttemptFailed

MODELS = ("echo", "slow")
SLOW_SECONDS = 0.1
# A reply comes in at most this many chunks, so that a slow one ends in seconds.
_MOST_CHUNKS = 100
_LEAST_CHARS = 4
_TOOL_LINE = re.compile(r"^/tool[ \t]+(?P<name>[\w.-]+)(?P<rest>\s.*|)\Z", re.DOTALL)


class Fake:
    """``fake:echo`` and ``fake:slow``.

    Args:
        sleep: Waits between the chunks of ``fake:slow``.
    """

    def __init__(self, sleep: Callable[[float], Awaitable[None]]) -> None:
        self._sleep = sleep

    @property
    def name(self) -> str:
        """The first part of its routes."""
        return "fake"

    @property
    def missing_key(self) -> str:
        """Always "": it needs none."""
        return ""

    def origin(self, model: str) -> str:
        """It keeps nothing; the name alone."""
        return f"fake||{model}"

    async def context_windows(self) -> dict[str, int]:
        """It has no window."""
        return {}

    async def chunks(self, request: ModelRequest, model: str) -> AsyncGenerator[Chunk, None]:
        """Answer with a tool call or with the newest text."""
        if model not in MODELS:
            raise AttemptFailed(Fault("status", "models.fault.no_model_silent", {"status": 404}, 404))
        newest = next(
            (message for message in reversed(request.messages) if message.role != "assistant"), None
        )
        text = newest.content if newest else ""
        call = tool_line(text) if newest and newest.role == "user" else None
        deltas, reason = (_call(*call), "tool_calls") if call else (_text(text or "(empty)"), "stop")
        said = 0
        for position, delta in enumerate(deltas):
            if position and model == "slow":
                await self._sleep(SLOW_SECONDS)
            said += 1
            yield {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        # Words stand in for tokens, so that screens have something to count; the price is known.
        read = len(request.system.split()) + sum(len(message.content.split()) for message in request.messages)
        yield {
            "choices": [{"index": 0, "delta": {}, "finish_reason": reason}],
            "usage": {"prompt_tokens": read, "completion_tokens": said, "cost": 0},
        }


def tool_line(text: str) -> tuple[str, str] | None:
    """The tool and its arguments that a message names; None when it names none.

    It is the last line starting with ``/tool`` that, with its arguments, ends the message
    (TRN-254). Arguments that are no JSON are passed on as they stand when they share its line.
    """
    starts = [match.start() for match in re.finditer(r"^/tool(?=\s|\Z)", text, re.MULTILINE)]
    lines = [match for start in reversed(starts) if (match := _TOOL_LINE.match(text[start:].rstrip()))]
    for line in lines:
        if (arguments := _arguments(line["rest"].strip())) is not None:
            return line["name"], arguments
    if lines and "\n" not in lines[0]["rest"]:
        return lines[0]["name"], lines[0]["rest"].strip()
    return None


def _arguments(rest: str) -> str | None:
    """The text of `rest` as strict JSON, when it is JSON with at most raw line breaks in strings."""
    if not rest:
        return "{}"
    try:
        orjson.loads(rest)
        return rest
    except orjson.JSONDecodeError:
        pass
    try:
        return json.dumps(json.loads(rest, strict=False), ensure_ascii=False)
    except (ValueError, RecursionError):
        return None


def _call(name: str, arguments: str) -> Iterator[dict[str, Any]]:
    first = {
        "index": 0,
        "id": str(uuid.uuid4()),
        "type": "function",
        "function": {"name": name, "arguments": ""},
    }
    yield {"tool_calls": [first]}
    for piece in _pieces(arguments):
        yield {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}


def _text(text: str) -> Iterator[dict[str, Any]]:
    for piece in _pieces(text):
        yield {"content": piece}


def _pieces(text: str) -> Iterator[str]:
    size = max(_LEAST_CHARS, -(-len(text) // _MOST_CHUNKS))
    for start in range(0, len(text), size):
        yield text[start : start + size]
