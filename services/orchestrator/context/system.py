"""The system prompt: stable parts first, the date line last of all (AGT-168 to 172)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import get_args
from zoneinfo import ZoneInfo

from services.common.toolhost.contract import ToolKind, ToolSpec
from services.common.wording import Locale, load
from services.orchestrator.agents.profile import Agent
from services.orchestrator.context.texts import AgentTexts


@dataclass(frozen=True, slots=True)
class SystemPrompt:
    """The system text of one model call."""

    text: str
    # Characters before the date line.
    stable_chars: int
    # Each part before the date line as it stands; "" for one that is left out.
    parts: Mapping[str, str]

    @property
    def digests(self) -> Mapping[str, str]:
        """What is kept of the parts, to say what moved between two calls (FLD-012)."""
        return {name: hashlib.sha256(part.encode()).hexdigest() for name, part in self.parts.items()}


def moved_parts(earlier: Mapping[str, str], later: Mapping[str, str]) -> list[str]:
    """Names of the parts whose digests differ between two calls."""
    names = dict.fromkeys([*earlier, *later])
    return [name for name in names if earlier.get(name) != later.get(name)]


def system_prompt(
    agent: Agent, texts: AgentTexts, tools: Sequence[ToolSpec], locale: Locale, now: datetime
) -> SystemPrompt:
    """Frame and tools, policy, persona files, what is told of the person, then the date."""
    words = load("orchestrator")
    policy = texts.policy_for(agent, locale)
    parts = {
        "frame": words.text(locale, "prompt.frame", name=agent.name),
        "tools": _tools(tools, locale),
        "policy": f"{words.text(locale, 'prompt.policy.proposer')}\n\n{policy}" if policy else "",
        "persona": "\n\n".join(f"## {name}\n\n{text}" for name, text in texts.persona),
        "user": f"{words.text(locale, 'prompt.person')}\n\n{texts.person}" if texts.person else "",
    }
    stable = "".join(f"{part.strip()}\n\n" for part in parts.values() if part)
    today = now.astimezone(ZoneInfo(agent.timezone)).date().isoformat()
    return SystemPrompt(
        stable + words.text(locale, "prompt.today", date=today),
        len(stable),
        parts,
    )


def _tools(tools: Sequence[ToolSpec], locale: Locale) -> str:
    """Names by kind with a line on when to use each kind, then the tools' own guidance (PIP-116, 120)."""
    words = load("orchestrator")
    if not tools:
        return words.text(locale, "prompt.no_tools")
    lines = [words.text(locale, "prompt.tools")]
    for kind in get_args(ToolKind):
        names = ", ".join(f"`{spec.name}`" for spec in tools if spec.kind == kind)
        if names:
            lines.append(f"- {words.text(locale, f'prompt.kinds.{kind}', names=names)}")
    guidance = [
        line
        for spec in tools
        for line in (f"`{spec.name}`: {spec.prompt_snippet}" if spec.prompt_snippet else "", *spec.guidelines)
        if line
    ]
    if guidance:
        lines.append("")
        lines += [f"- {line}" for line in guidance]
    return "\n".join(lines)
