"""How large a prompt is, by its parts: what is compared with windows (FLD-003, FLD-004)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from services.common.toolhost.contract import ToolSpec
from services.orchestrator.models.contract import ChatMessage

CHARS_PER_TOKEN = 3
# Of the smallest window of an agent's routes, what every prompt holds: above the first its page warns,
# above the second no model is asked (FLD-004).
WARNED_FIXED = 0.5
MOST_FIXED = 0.9


@dataclass(frozen=True, slots=True)
class PromptSizes:
    """Characters of the parts of one prompt."""

    # The frame, the persona and the date.
    instructions: int
    # Their declarations and what the system text says of them.
    tools: int
    # What is told of the person.
    memory: int
    # The messages.
    history: int

    @property
    def fixed(self) -> int:
        """What a shorter conversation does not make smaller."""
        return self.instructions + self.tools + self.memory

    @property
    def total(self) -> int:
        """All of it."""
        return self.fixed + self.history


def tokens_of(chars: int) -> int:
    """About how many tokens so many characters are, rounded away from zero."""
    return -(-chars // CHARS_PER_TOKEN) if chars >= 0 else -tokens_of(-chars)


def declared_chars(tools: Sequence[ToolSpec]) -> int:
    """Characters of tools as a request declares them."""
    return sum(
        len(tool.name) + len(tool.description) + len(orjson.dumps(tool.parameters).decode()) for tool in tools
    )


def history_chars(messages: Sequence[ChatMessage]) -> int:
    """Characters of messages with their calls and what goes back to their provider."""
    return sum(
        len(message.content)
        + len(message.opaque or "")
        + sum(len(call.name) + len(call.arguments) for call in message.tool_calls)
        for message in messages
    )
