"""Every section of the manage screen, and books with something of each kind in them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from .stub.shapes import shape

# Addresses behind ``#/manage/``; ``{run}`` stands for the id of a run.
SECTIONS = (
    "activity",
    "activity/{run}",
    "approvals",
    "costs",
    "audit",
    "crew",
    "crew/lan",
    "tools",
    "tools/figures",
    "connections",
    "settings",
)


def fill_the_books(api: Any) -> None:
    """Write the trail, figures, costs, budgets, a second agent and one notification."""
    books, first = api.records, api.house.members[0]
    api.house.members.append(
        {**first, "id": "lan", "name": "Lan", "master": False, "autonomous": True, "warnings": ["No folder."]}
    )
    books.call("shell_run", command="rm -rf build", rule="rm -rf", decided_by="owner", exit_code=0, ms=9)
    books.call("shell_run", command="reboot " + "x" * 300, allowed_by="refused", result="not_run")
    books.call("workspace_edit", allowed_by="always", result="failed", fault="arguments")
    books.call("workspace_write", result="open")
    few = [shape("Count", name="timeout", count=3)]
    books.uses = [
        shape("ToolUse", tool="shell_run", agent_id="default", calls=40, failures=few, p50_ms=9, bytes_out=9)
    ]
    books.faults = [shape("DescriptionFaults", tool="workspace_edit", total=3, parameters=few, absent=2)]
    figures = {"calls": 9, "prompt_tokens": 1000, "cached_tokens": 500, "completion_tokens": 100}
    known = {**figures, "cost_usd": 0.25, "unknown_cost_calls": 2, "estimated_cost_calls": 1}
    unknown = {**figures, "unknown_cost_calls": 9}
    books.stats = {
        "days": [shape("DayStats", day=datetime.now(UTC).strftime("%Y-%m-%d"), **known)],
        "models": [
            shape("ModelStats", provider="openrouter", model="a/b", **known),
            shape("ModelStats", provider="ollama", model="qwen3", **unknown),
        ],
        "purposes": [shape("PurposeStats", purpose="turn", **known)],
        "by_agent": [shape("AgentStats", agent_id="default", **known)],
    }
    books.budgets = [
        shape(
            "Budget", scope="crew", period="day", limit_usd=2.0, spent_usd=1.9, state="near", reserved_usd=0.1
        ),
        shape("Budget", scope="agent", id="lan", period="month", limit_usd=2.0, spent_usd=2.4, state="spent"),
    ]
    told = books.told("The host tools does not answer.")
    api.state.tell_activity("notification", notification=told, unread=1)
