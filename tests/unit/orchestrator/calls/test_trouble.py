"""When a tool counts as failing, and when it is well again."""

from __future__ import annotations

from dataclasses import replace

from services.orchestrator.calls.contract import CallFault
from services.orchestrator.calls.trouble import ToolTroubles
from tests.unit.orchestrator.calls.test_metrics import outcome


def told_of(faults: list[CallFault | None], *, ran: bool = True) -> tuple[list[str], list[str]]:
    """What is told, "+" for a beginning, and the causes there are at the end."""
    told: list[str] = []
    troubles = ToolTroubles(lambda trouble, begins: told.append(f"{'+' if begins else '-'}{trouble.cause}"))
    for fault in faults:
        troubles.observe(replace(outcome(), ok=fault is None, fault=fault, ms=1 if ran else None))
    return told, [one.cause for one in troubles.now]


def test_five_failures_in_ten_calls_are_told_once_and_their_end_once() -> None:
    assert told_of(["tool", None] * 4) == ([], [])
    assert told_of(["tool", None] * 5) == (["+failing"], ["failing"])
    assert told_of(["crash"] * 30) == (["+failing"], ["failing"])
    assert told_of(["crash"] * 5 + [None] * 9)[1] == ["failing"]
    assert told_of(["crash"] * 5 + [None] * 10) == (["+failing", "-failing"], [])


def test_time_outs_are_a_cause_of_their_own() -> None:
    assert told_of(["timeout"] * 2)[1] == []
    assert told_of(["timeout"] * 3) == (["+timeouts"], ["timeouts"])
    assert told_of(["timeout"] * 5)[1] == ["timeouts", "failing"]
    assert told_of(["timeout"] * 5 + [None] * 10)[1] == []


def test_what_says_nothing_of_the_tool_does_not_count() -> None:
    for fault in ("cancelled", "refused"):
        assert told_of([fault] * 10) == ([], [])
    assert told_of(["tool"] * 10, ran=False) == ([], [])
