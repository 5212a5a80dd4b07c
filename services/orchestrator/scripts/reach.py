"""Which of an agent's tools its scripts may call, and what a script is told of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.common.toolhost.contract import ToolSpec
from services.common.wording import Locale, load
from services.orchestrator.agents.profile import Agent
from services.orchestrator.calls.toolbox import HeldTool, Toolbox

TOOL_SCRIPT = "tool_script"

# They work through the conversation, wake it, or are scripts' own business (SCR-034, SCR-362).
_DIRECT_ONLY = frozenset(
    {
        "progress_note",
        "delegate",
        "tool_search",
        TOOL_SCRIPT,
        "artifact_read",
        "read_tool_result",
        "read_transcript",
        "set_timer",
        "timers",
        "cancel_timer",
        "shell_start",
        "task_status",
        "task_output",
        "task_cancel",
        "monitor",
    }
)
# A person is asked whatever the conversation allows (SCR-038).
_ALWAYS_ASKS = frozenset({"ask_user", "schedule_create"})


@dataclass(frozen=True, slots=True)
class Reach:
    """What one script may call.

    Attributes:
        held: The agent's tools.
        callable: Those a script may call, in the order the agent holds them.
    """

    held: Toolbox
    callable: Toolbox

    def refusal(self, name: str, locale: Locale) -> str | None:
        """Why a script ends at a call of `name`; None for a tool it may call and for unknown names.

        The sentence names the tool and nothing else of the script (SCR-052).
        """
        if self.callable.find(name) is not None or self.held.find(name) is None:
            return None
        key = "closed"
        if name in _ALWAYS_ASKS:
            key = "always_asks"
        elif name in _DIRECT_ONLY:
            key = "direct_only"
        return load("orchestrator").text(locale, f"scripts.refused.{key}", tool=name)

    def unknown(self, name: str, locale: Locale) -> str:
        """What a call of a name the agent does not hold is answered with (SCR-049)."""
        words = load("orchestrator")
        near = self.callable.nearest(name, limit=1)
        if near:
            return words.text(locale, "scripts.unknown.near", tool=name[:80], near=near[0])
        return words.text(locale, "scripts.unknown.none", tool=name[:80])


def reach(agent: Agent, tools: Sequence[HeldTool]) -> Reach:
    """What scripts of `agent`, which holds `tools`, may call (SCR-031 to 039)."""
    gated = agent.script_calls == "gated"
    open_to_scripts = tuple(tool for tool in tools if _open(tool.spec, gated=gated))
    return Reach(Toolbox(tuple(tools)), Toolbox(open_to_scripts))


def writes(spec: ToolSpec) -> bool:
    """Whether a call of the tool is a writing one, which the gate judges and batches wait for."""
    return spec.effect != "read" or spec.requires_approval or not spec.replay_safe


def _open(spec: ToolSpec, *, gated: bool) -> bool:
    if spec.name in _DIRECT_ONLY or spec.name in _ALWAYS_ASKS:
        return False
    return gated or not writes(spec)
