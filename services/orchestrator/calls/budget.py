"""How many calls the scripts of one turn may make together (TRN-110 to 114)."""

from __future__ import annotations

# The limit, by each model call that the turn may make.
CALLS_PER_STEP = 10


class NestedBudget:
    """Room for the calls of all scripts of one turn.

    Args:
        limit: The most calls.
        used: Made before, when the turn was paused or taken over.
    """

    def __init__(self, limit: int, used: int = 0) -> None:
        self.limit = limit
        self._used = used
        self._refused = False

    @property
    def exhausted(self) -> bool:
        """Whether a script was stopped because there was no room: the turn ends with it."""
        return self._refused

    def take(self, calls: int) -> bool:
        """Room for `calls` calls, for all of them or for none (TRN-113)."""
        if self._used + calls > self.limit:
            self._refused = True
            return False
        self._used += calls
        return True

    def give_back(self, calls: int) -> None:
        """Room that was taken for calls that never began."""
        self._used = max(0, self._used - calls)
