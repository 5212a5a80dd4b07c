"""Whether a tool keeps failing, by its last calls (PIP-113, PIP-155): pure functions.

A tool is in trouble when five of its last ten calls failed, three of them ran out of time, or three
calls of the last hour were ended by a limit of resources. Between the marks of beginning and end
nothing changes, so that a tool at the edge is not told of each time.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from services.orchestrator.calls.contract import CallFault
from services.orchestrator.store.notifications import LastCalls

Cause = Literal["failing", "timeouts", "limits"]
CAUSES: tuple[Cause, ...] = ("timeouts", "limits", "failing")

_MOST_FAILURES = 5
_MOST_TIMEOUTS = 3
_MOST_LIMITS = 3
# What says something of the tool, not of the model, the person or the turn.
_OF_THE_TOOL: frozenset[CallFault] = frozenset({"timeout", "limit", "unavailable", "crash", "tool"})
# A fault that is told as a cause of its own while that lasts.
_TOLD_AS: dict[str, Cause] = {"timeout": "timeouts", "limit": "limits"}


def troubles(calls: LastCalls, before: Collection[Cause]) -> list[Cause]:
    """The causes for which the tool is in trouble now.

    Args:
        calls: Its last calls.
        before: The causes for which it is in trouble already.
    """
    now: list[Cause] = []
    for cause in CAUSES:
        begins, over = _marks(cause, calls, now)
        if begins or (cause in before and not over):
            now.append(cause)
    return now


def _marks(cause: Cause, calls: LastCalls, told: Collection[Cause]) -> tuple[bool, bool]:
    """Whether a trouble of this cause begins, and whether one that there was is over."""
    match cause:
        case "timeouts":
            late = sum(fault == "timeout" for fault in calls.faults)
            return late >= _MOST_TIMEOUTS, late == 0
        case "limits":
            return calls.limits >= _MOST_LIMITS, calls.limits == 0
        case "failing":
            failures = [fault for fault in calls.faults if fault in _OF_THE_TOOL]
            # Ten calls of which five ran out of time are one thing to be told, not two.
            fresh = [fault for fault in failures if _TOLD_AS.get(fault) not in told]
            return len(fresh) >= _MOST_FAILURES, not failures
