"""One model call's prompt: the system text and the messages (agents.md, sections 9 and 11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from services.common.toolhost.contract import ToolSpec
from services.common.wording import Locale
from services.orchestrator.agents.profile import Agent
from services.orchestrator.context.history import chat_messages
from services.orchestrator.context.sizes import PromptSizes, declared_chars, history_chars, tokens_of
from services.orchestrator.context.system import SystemPrompt, system_prompt
from services.orchestrator.context.texts import AgentTexts, read_texts_now
from services.orchestrator.models.contract import ChatMessage
from services.orchestrator.store.compactions import Compaction
from services.orchestrator.store.records import Message


@dataclass(frozen=True, slots=True)
class Prompt:
    """What one model call is told."""

    system_prompt: SystemPrompt
    messages: list[ChatMessage]
    # Characters of the tools as they are declared.
    declared_chars: int = 0

    @property
    def system(self) -> str:
        """The system text."""
        return self.system_prompt.text

    @property
    def stable_chars(self) -> int:
        """How many characters of it come before what changes from day to day (FLD-012)."""
        return self.system_prompt.stable_chars

    @property
    def sizes(self) -> PromptSizes:
        """Its characters by part."""
        parts = self.system_prompt.parts
        told_tools, memory = len(parts["tools"]), len(parts["user"])
        return PromptSizes(
            instructions=len(self.system) - told_tools - memory,
            tools=told_tools + self.declared_chars,
            memory=memory,
            history=history_chars(self.messages),
        )


def assemble(
    agent: Agent,
    tools: Sequence[ToolSpec],
    messages: Sequence[Message],
    locale: Locale,
    now: datetime,
    *,
    texts: AgentTexts | None = None,
    compaction: Compaction | None = None,
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
        compaction: The summary that stands for older turns.
    """
    return Prompt(
        system_prompt(agent, texts or read_texts_now(agent), tools, locale, now),
        chat_messages(messages, locale, compaction),
        declared_chars(tools),
    )


def estimated_tokens(
    prompt: Prompt, messages: Sequence[Message], locale: Locale, compaction: Compaction | None
) -> int:
    """About how many tokens a prompt has: as last reported, and a third of the characters since (FLD-003).

    What was reported before a compaction says nothing of the prompt after it.
    """
    counted_from = compaction.made_after_seq if compaction else 0
    for place in range(len(messages) - 1, -1, -1):
        reported = messages[place].usage.prompt_tokens
        if messages[place].seq <= counted_from:
            break
        if reported is not None:
            # The reply's own prompt was the log before it.
            before = history_chars(chat_messages(messages[:place], locale, compaction))
            return reported + tokens_of(history_chars(prompt.messages) - before)
    return tokens_of(prompt.sizes.total)
