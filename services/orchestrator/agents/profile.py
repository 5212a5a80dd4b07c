"""One agent with every setting decided: its file, its mode and the crew's settings together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from services.common.toolhost.contract import Mode, ShellLimits

MASTER_ID = "default"
# What an agent may and may not do, in the owner's words; no tool reaches it.
POLICY_NAME = "POLICY.md"

Effort = Literal["minimal", "low", "medium", "high"]
ToolExecution = Literal["parallel", "sequential"]
ScriptCalls = Literal["none", "read_only", "gated"]


@dataclass(frozen=True, slots=True)
class ReviewRule:
    """A second model judges calls of some tools before they run unattended (PIP-100)."""

    # Names of tools, or patterns such as ``mcp__*``.
    tools: tuple[str, ...]
    # ``provider:model`` of the judge.
    route: str
    # The call and the policy alone, or the first model's messages as well.
    sees: Literal["call", "conversation"] = "call"
    # A denial is put before a person, or goes back to the first model (PIP-102).
    on_deny: Literal["ask", "deny"] = "ask"


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent as turns, calls and prompts use it."""

    id: str
    name: str
    description: str
    mode: Mode
    # Of agent.yaml and the persona files.
    folder: Path
    # Of the whole crew; what all agents are told of the person is under it.
    home: Path
    # IANA name of the person's time zone.
    timezone: str
    workspace: Path
    # ``provider:model``, in the order they are tried.
    routes: tuple[str, ...]
    escalation_route: str | None
    reasoning: Effort | None
    # Allow-list; empty: everything the mode gives (TLS-036).
    tools: tuple[str, ...]
    # Model calls of one turn.
    max_steps: int
    # Wall clock of a turn nobody attends (FLD-008).
    max_minutes: int
    # Of a new conversation; 0 means no cap.
    cost_cap_usd: float
    # Whether new conversations skip the approval of tools.
    autonomous: bool
    # The most characters of one tool result that enter the context.
    tool_output_chars: int
    # Whether the profile sets that ceiling itself (TLS-121).
    own_output_ceiling: bool
    tool_execution: ToolExecution
    # What the agent's scripts may call; only its own file decides (SCR-014).
    script_calls: ScriptCalls
    # Whether its scripts may ask a model.
    script_llm: bool
    # The first that names a tool judges its calls.
    review: tuple[ReviewRule, ...]
    # File names in `folder`, in the order they are told.
    persona_files: tuple[str, ...]
    # Relative to `workspace`; empty: all of it.
    write_paths: tuple[str, ...]
    shell_network: bool
    shell_write_paths: tuple[str, ...]
    shell_ask_patterns: tuple[str, ...]
    shell_allow_patterns: tuple[str, ...]
    shell_deny_patterns: tuple[str, ...]
    shell_limits: ShellLimits
    # The keys of the file as written.
    declared: Mapping[str, Any] = field(default_factory=dict)
    # One sentence each, in the crew's language.
    warnings: tuple[str, ...] = ()

    @property
    def master(self) -> bool:
        """Whether this is the agent people talk to when they name none (AGT-079)."""
        return self.id == MASTER_ID

    @property
    def persona_names(self) -> list[str]:
        """The persona files that exist (AGT-071)."""
        return [name for name in self.persona_files if (self.folder / name).is_file()]
