"""One model call's prompt: the system text and the messages (agents.md, sections 9 and 11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from services.common.toolhost.contract import ToolSpec
from services.common.wording import Locale
from services.orchestrator.agents.profile import Agent
from services.orchestrator.context.history import chat_messages
from services.orchestrator.context.system import SystemPrompt, system_prompt
from services.orchestrator.context.texts import AgentTexts, read_texts_now
from services.orchestrator.models.contract import ChatMessage
from services.orchestrator.store.records import Message


@dataclass(frozen=True, slots=True)
class Prompt:
    """What one model call is told."""

    system_prompt: SystemPrompt
    messages: list[ChatMessage]

    @property
    def system(self) -> str:
        """The system text."""
        return self.system_prompt.text

    @property
    def stable_chars(self) -> int:
        """How many characters of it come before what changes from day to day (FLD-012)."""
        return self.system_prompt.stable_chars


def assemble(
    agent: Agent,
    tools: Sequence[ToolSpec],
    messages: Sequence[Message],
    locale: Locale,
    now: datetime,
    *,
    texts: AgentTexts | None = None,
) -> Prompt:
    """Put together what `agent` is told at its next model call.

    Two calls with unchanged files and tools differ nowhere before the date line, and the messages
    of the later one begin with those of the earlier, up to the next ten results that are stubbed.

    Args:
        agent: Who is asked.
        tools: What it holds, in the order they are declared.
        messages: The conversation's whole log.
        locale: Of the product's own words.
        now: With a zone; the date line is in the person's.
        texts: The agent's files as they are; None reads them here, blocking.
    """
    return Prompt(
        system_prompt(agent, texts or read_texts_now(agent), tools, locale, now),
        chat_messages(messages, locale),
    )
