"""What the model is told of `tool_script`: made from what the agent's scripts may call (SCR-019 to 030)."""

from __future__ import annotations

from services.common.toolhost.contract import ToolSpec
from services.common.wording import Locale, load
from services.orchestrator.agents.profile import Agent
from services.orchestrator.calls.arguments import call_line
from services.orchestrator.calls.toolbox import Toolbox

_MOST_LINES = 30
_MOST_PARAMETERS = 12
# Named in the description only by how many they are: none of them is open at `codemode` yet.
_MCP_PREFIX = "mcp__"


def description(agent: Agent, tools: Toolbox, locale: Locale) -> str:
    """The description for `agent`, whose scripts may call `tools`."""
    words = load("orchestrator")

    def text(key: str, **values: object) -> str:
        return words.text(locale, f"tool.tool_script.description.{key}", **values).strip()

    named = [spec for spec in tools.specs if not spec.name.startswith(_MCP_PREFIX)][:_MOST_LINES]
    lines = [f"- {tool_line(spec)}" for spec in named]
    if more := len(tools.specs) - len(named):
        lines.append(text("more", count=more))
    parts = [text("purpose"), text("language"), text("calls"), "\n".join(lines), text("lookups")]
    parts += [text("batches"), text("store")]
    parts.append(text("gated" if agent.script_calls == "gated" else "read_only"))
    if agent.script_llm:
        parts.append(text("llm"))
    return "\n\n".join(parts)


def tool_line(spec: ToolSpec) -> str:
    """``name(a: string, b?: integer)`` with at most twelve parameters (SCR-020, 022, 023)."""
    return call_line(spec.name, spec.parameters, most=_MOST_PARAMETERS)
