"""When a tool counts as failing, and when it is well again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from services.orchestrator.calls.trouble import Cause, troubles
from services.orchestrator.store.notifications import LastCalls


def after(faults: Sequence[str], before: Sequence[Cause] = (), *, limits: int = 0) -> list[Cause]:
    """The causes after calls that ended so; the order within ten says nothing."""
    return troubles(LastCalls("t", list(faults)[-10:], limits), before)


@pytest.mark.spec("PIP-113")
def test_five_failures_in_ten_calls_begin_and_ten_good_ones_end_it() -> None:
    assert after(["tool", ""] * 4) == []
    assert after(["tool", ""] * 5) == ["failing"]
    assert after(["crash", "tool", "unavailable", "tool", "limit"]) == ["failing"]
    assert after([*["crash"] * 5, *[""] * 9], ["failing"]) == ["failing"]
    assert after([""] * 10, ["failing"]) == []
    # Between the two marks nothing begins.
    assert after([*["crash"] * 4, *[""] * 6]) == []


@pytest.mark.spec("PIP-155")
def test_three_time_outs_are_one_cause_and_not_told_a_second_time_as_failures() -> None:
    assert after(["timeout"] * 2) == []
    assert after(["timeout"] * 3) == ["timeouts"]
    assert after(["timeout"] * 10) == ["timeouts"]
    assert after(["timeout"] * 10, ["timeouts"]) == ["timeouts"]
    assert after([*["timeout"] * 3, *["tool"] * 5]) == ["timeouts", "failing"]
    assert after([*["timeout"] * 2, *["tool"] * 3]) == ["failing"]
    assert after([*["timeout"], *[""] * 9], ["timeouts"]) == ["timeouts"]
    assert after([""] * 10, ["timeouts"]) == []


@pytest.mark.spec("PIP-155")
def test_three_ends_by_a_limit_in_an_hour_are_a_cause_until_an_hour_without() -> None:
    assert after(["limit"] * 2, limits=2) == []
    assert after(["limit"] * 3, limits=3) == ["limits"]
    assert after(["limit"] * 9, ["limits"], limits=9) == ["limits"]
    assert after([""] * 10, ["limits"], limits=1) == ["limits"]
    assert after([""] * 10, ["limits"], limits=0) == []


def test_faults_of_others_do_not_count() -> None:
    for fault in ("arguments", "unknown_tool", "blocked", "interrupted", "closed"):
        assert after([fault] * 10) == []
