"""Which routes failed lately and are passed over for a while (FLD-010)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from services.orchestrator.models.contract import Fault, Route

FIRST_PAUSE_SECONDS = 60.0
LONGEST_PAUSE_SECONDS = 600.0
# Failed calls in a row until a route is passed over.
PATIENCE = 2


@dataclass(slots=True)
class _State:
    failures: int = 0
    pause: float = 0.0
    until: float = 0.0
    fault: Fault | None = None


class RouteHealth:
    """Counts failed calls in a row.

    Args:
        clock: Seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._states: dict[Route, _State] = {}

    def failed(self, route: Route, fault: Fault) -> None:
        """A call, its retry included, failed on `route`."""
        state = self._states.setdefault(route, _State())
        state.failures += 1
        state.fault = fault
        if state.failures >= PATIENCE:
            state.pause = min(max(FIRST_PAUSE_SECONDS, state.pause * 2), LONGEST_PAUSE_SECONDS)
            state.until = self._clock() + state.pause

    def succeeded(self, route: Route) -> None:
        """A call succeeded: everything before is forgotten."""
        self._states.pop(route, None)

    def seconds_left(self, route: Route) -> float:
        """For how long `route` is still passed over; 0 when it is asked."""
        state = self._states.get(route)
        return max(0.0, state.until - self._clock()) if state else 0.0

    def last_fault(self, route: Route) -> Fault | None:
        """What went wrong with the last call on `route`; None after a success."""
        state = self._states.get(route)
        return state.fault if state else None

    def forget(self) -> None:
        """Start anew, after keys or addresses changed."""
        self._states.clear()
