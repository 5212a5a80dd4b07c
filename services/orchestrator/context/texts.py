"""The owner's own texts that go into an agent's prompt, read from its files."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from services.common.wording import Locale, load
from services.orchestrator.agents.profile import POLICY_NAME, Agent

# Of each file that becomes a section (AGT-135, AGT-173).
SECTION_CHARS = 24_000
PERSON_CHARS = 4_000

_PERSON_FILE = "users/owner/USER.md"
# Characters of UTF-8 have at most four bytes.
_BYTES_PER_CHAR = 4


@dataclass(frozen=True, slots=True)
class AgentTexts:
    """Texts of one agent, as they were before a model call."""

    # Name and text of each persona file that exists, in the profile's order.
    persona: Sequence[tuple[str, str]] = ()
    # What all agents are told of the person; "" when there is nothing.
    person: str = ""
    # The owner's policy for the agent; "" when there is none.
    policy: str = ""

    def policy_for(self, agent: Agent, locale: Locale) -> str:
        """The text that the agent and whoever reviews its calls both have, byte for byte (PIP-148).

        An agent whose calls are reviewed has one in any case.
        """
        if self.policy or not agent.review:
            return self.policy
        return load("orchestrator").text(locale, "prompt.policy.default")


async def read_texts(agent: Agent) -> AgentTexts:
    """Read the texts of `agent`; files that are missing or cannot be read are passed over (AGT-136)."""
    return await asyncio.to_thread(read_texts_now, agent)


def read_texts_now(agent: Agent) -> AgentTexts:
    """As `read_texts`, blocking."""
    persona = []
    for name in agent.persona_files:
        text = _read(agent.folder / name, SECTION_CHARS)
        if text:
            persona.append((name, text))
    return AgentTexts(
        tuple(persona),
        _read(agent.home / _PERSON_FILE, PERSON_CHARS),
        _read(agent.folder / POLICY_NAME, SECTION_CHARS),
    )


def _read(path: Path, chars: int) -> str:
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            raw = file.read((chars + 1) * _BYTES_PER_CHAR)
    except OSError:
        return ""
    text = raw.decode("utf-8", "replace").replace("\0", "\ufffd").strip()
    return text if len(text) <= chars else f"{text[:chars]}…"
