"""`tool_script`: a model's script, run in the sandbox, answered with what it printed (script.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from services.common.toolhost.contract import (
    Arguments,
    CallContext,
    Mode,
    NoOpinion,
    Run,
    ToolResult,
    ToolSpec,
    Verdict,
)
from services.common.wording import Locale, load
from services.orchestrator.agents.profile import Agent
from services.orchestrator.calls.toolbox import HeldTool
from services.orchestrator.scripts.description import description
from services.orchestrator.scripts.limits import TOTAL_SECONDS
from services.orchestrator.scripts.reach import TOOL_SCRIPT, reach
from services.orchestrator.scripts.running import Scripts

# The host's own end of the call, for a script that its session did not end.
_DEADLINE_SECONDS = int(TOTAL_SECONDS) + 30


class ToolScript:
    """A tool of the orchestrator's own host.

    Args:
        scripts: Runs them.
    """

    name = TOOL_SCRIPT

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    def spec(self, locale: Locale) -> ToolSpec:
        """The tool without what depends on its holder, which `derived` adds."""
        words = load("orchestrator")

        def text(key: str) -> str:
            return words.text(locale, f"tool.tool_script.{key}").strip()

        return ToolSpec(
            name=self.name,
            description=text("description.purpose"),
            parameters={
                "type": "object",
                "properties": {"script": {"type": "string", "description": text("parameters.script")}},
                "required": ["script"],
                "additionalProperties": False,
            },
            label=text("label"),
            kind="analyse",
            effect="change",
            deadline_seconds=_DEADLINE_SECONDS,
            card=text("card"),
        )

    @staticmethod
    def derived(agent: Agent, spec: ToolSpec, tools: Sequence[HeldTool], locale: Locale) -> ToolSpec | None:
        """The tool as `agent` holds it beside `tools`; None when it does not (SCR-002 to 008)."""
        callable_tools = reach(agent, tools).callable
        if agent.script_calls == "none" or not callable_tools.tools:
            return None
        gated = agent.script_calls == "gated"
        return replace(
            spec,
            description=description(agent, callable_tools, locale),
            # A script that only reads is run again after a restart, any other is not (SCR-096, 285).
            effect="change" if gated else "read",
            replay_safe=not gated,
        )

    def offered_to(self, mode: Mode, settings: Mapping[str, Any]) -> bool:
        """To all; `derived` takes it from agents without a tool to call."""
        return True

    def prepare(self, arguments: Arguments) -> Arguments:
        """There are no older shapes."""
        return arguments

    async def judge(self, context: CallContext, arguments: Arguments) -> Verdict:
        """A script asks nobody: its calls are judged one by one."""
        return NoOpinion()

    async def run(self, run: Run) -> ToolResult:
        """Run the script; every way in which it ends is a result."""
        return await self._scripts.run(run)
