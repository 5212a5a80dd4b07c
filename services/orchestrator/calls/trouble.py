"""Whether tools keep failing, by their last calls (PIP-113, PIP-155).

A tool is in trouble when five of its last ten calls failed, or three of them ran out of time. Each
cause is told once when it begins and once when it is over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import structlog

from services.common.times import utc_now
from services.orchestrator.calls.contract import CallFault, CallOutcome

Cause = Literal["failing", "timeouts"]

_LAST_CALLS = 10
_MOST_FAILURES = 5
_MOST_TIMEOUTS = 3
# What says something of the tool, not of the model, the person or the turn.
_OF_THE_TOOL: frozenset[CallFault] = frozenset({"timeout", "limit", "unavailable", "crash", "tool"})
_MOST_TOOLS = 1_000

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Trouble:
    """A tool that keeps failing, for one cause."""

    tool: str
    cause: Cause
    since: datetime


class ToolTroubles:
    """Watches the calls of this process.

    Args:
        tell: Called once when a trouble begins (True) and once when it is over (False). By default it
            writes a line of the log.
        clock: The present moment in UTC.
    """

    def __init__(
        self, tell: Callable[[Trouble, bool], None] | None = None, clock: Callable[[], datetime] = utc_now
    ) -> None:
        self._tell = tell or _log_trouble
        self._clock = clock
        self._last: dict[str, deque[CallFault | None]] = {}
        self._troubles: dict[tuple[str, Cause], Trouble] = {}

    @property
    def now(self) -> list[Trouble]:
        """The troubles there are, the oldest first."""
        return list(self._troubles.values())

    def observe(self, outcome: CallOutcome) -> None:
        """Take a call that ran; others say nothing of the tool."""
        if outcome.ms is None or outcome.fault in {"cancelled", "refused"}:
            return
        tool = outcome.call.name
        if tool not in self._last and len(self._last) >= _MOST_TOOLS:
            return
        last = self._last.setdefault(tool, deque(maxlen=_LAST_CALLS))
        last.append(outcome.fault)
        failed = sum(fault in _OF_THE_TOOL for fault in last)
        self._settle(tool, "failing", begins=failed >= _MOST_FAILURES, over=failed == 0)
        late = sum(fault == "timeout" for fault in last)
        self._settle(tool, "timeouts", begins=late >= _MOST_TIMEOUTS, over=late == 0)

    def _settle(self, tool: str, cause: Cause, *, begins: bool, over: bool) -> None:
        """Between the two marks nothing changes, so that a tool at the edge is not told of each time."""
        key = (tool, cause)
        if begins and key not in self._troubles:
            self._troubles[key] = Trouble(tool, cause, self._clock())
            self._tell(self._troubles[key], True)
        elif over and key in self._troubles:
            self._tell(self._troubles.pop(key), False)


def _log_trouble(trouble: Trouble, begins: bool) -> None:
    if begins:
        _log.warning("tool_in_trouble", tool=trouble.tool, cause=trouble.cause)
    else:
        _log.info("tool_recovered", tool=trouble.tool, cause=trouble.cause)
