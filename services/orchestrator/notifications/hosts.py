"""Hosts that have been down for long, as this process sees them (PIP-113)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from services.orchestrator.hosts.contract import HostState

DOWN_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Change:
    """A host counts as down from now on, or is back."""

    host: str
    down: bool


@dataclass
class HostWatch:
    """Remembers since when each host has not answered.

    Args:
        clock: Seconds that only grow.
    """

    clock: Callable[[], float] = time.monotonic
    _since: dict[str, float] = field(default_factory=dict)
    # Whether each host was down when last told of; absent: it was never ready nor told of.
    _told: dict[str, bool] = field(default_factory=dict)

    def look(self, states: Iterable[HostState]) -> list[Change]:
        """What changed: a host down for over a minute, or ready for the first time or again.

        The first "ready" of a host is told too: it ends what a process before this one began.
        """
        changes = []
        for state in states:
            if state.status == "ready":
                self._since.pop(state.name, None)
                if self._told.get(state.name) is not False:
                    self._told[state.name] = False
                    changes.append(Change(state.name, down=False))
                continue
            since = self._since.setdefault(state.name, self.clock())
            if self._told.get(state.name) is not True and self.clock() - since > DOWN_SECONDS:
                self._told[state.name] = True
                changes.append(Change(state.name, down=True))
        return changes
