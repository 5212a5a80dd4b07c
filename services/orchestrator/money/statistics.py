"""The figures of the whole ledger, worked out anew only after something was written to it (TRN-333)."""

from __future__ import annotations

import asyncio

from services.orchestrator.store import ledger
from services.orchestrator.store.ledger import Statistics
from services.orchestrator.store.pool import Database


class CachedStatistics:
    """The last answer, and the number of entries it was made of.

    Entries are only added, by whatever process, so the same number means the same figures.

    Args:
        database: Holds the ledger.
        timezone: IANA name of the zone whose days are counted (TRN-332).
    """

    def __init__(self, database: Database, *, timezone: str) -> None:
        self._database = database
        self._timezone = timezone
        self._last: tuple[int, Statistics] | None = None
        # Readers who come at once wait for one answer instead of each asking Postgres for theirs.
        self._computing = asyncio.Lock()

    async def now(self) -> Statistics:
        """The figures as of now."""
        async with self._computing, self._database.snapshot() as connection:
            entries = await ledger.entries(connection)
            if self._last is None or self._last[0] != entries:
                self._last = (entries, await ledger.statistics(connection, timezone=self._timezone))
            return self._last[1]
