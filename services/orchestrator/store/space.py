"""Whether there is room to store anything (FLD-051)."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import structlog

from services.common.errors import StoreFull
from services.orchestrator.store.pool import Database, DatabaseLost, WriteRefused

log = structlog.get_logger(__name__)

MIN_FREE_MB = 200
# Room that came back is noticed within this time, in seconds.
LOOK_SECONDS = 2.0
# More than what a full disk's last pages, or a table's free ones, could still take.
_PROBE_BYTES = 256 * 1024

FreeBytes = Callable[[Path], int]
Shortage = Literal["disk", "database"]


def free_bytes(folder: Path) -> int:
    """What can still be written in the file system of `folder`. Blocks."""
    return shutil.disk_usage(folder).free


class Space:
    """Knows whether writing makes sense, from the disk of the home and from what Postgres refuses.

    Args:
        home: On the file system that is looked at.
        database: Asked for a write, taken back, after it has refused one.
        min_free_mb: Under this nothing new is begun.
        free: How free space is found out; `free_bytes` by default.
    """

    def __init__(
        self,
        home: Path,
        database: Database,
        *,
        min_free_mb: int = MIN_FREE_MB,
        free: FreeBytes | None = None,
    ) -> None:
        self._home = home
        self._database = database
        self._min_free_mb = min_free_mb
        self._free = free
        self._low = False
        self._refused = False

    @property
    def shortage(self) -> Shortage | None:
        """What there is no room in; None when all is well."""
        if self._refused:
            return "database"
        return "disk" if self._low else None

    @property
    def min_free_mb(self) -> int:
        """The least that has to be free, in MB."""
        return self._min_free_mb

    def require(self) -> None:
        """Go on only when there is room.

        Raises:
            StoreFull: There is not; nothing was stored.
        """
        if self._refused:
            raise writes_refused()
        if self._low:
            raise StoreFull("DISK_FULL", "error.disk_full", limit=self._min_free_mb)

    def refused(self, error: Exception) -> None:
        """Postgres refused a write with one of `WriteRefused`; holds until it takes one again."""
        if not self._refused:
            log.error("database_refuses_writes", error=type(error).__name__)
        self._refused = True

    async def look(self) -> Shortage | None:
        """Find out anew; the answer is `shortage` from then on."""
        before = self.shortage
        free = await asyncio.to_thread(self._free or free_bytes, self._home)
        self._low = free < self._min_free_mb * 1_000_000
        if self._refused and not self._low:
            self._refused = not await self._takes_writes()
        if self.shortage != before:
            log.warning("space_changed", shortage=self.shortage or "none", free_mb=free // 1_000_000)
        return self.shortage

    async def _takes_writes(self) -> bool:
        try:
            async with self._database.connection() as connection, connection.transaction(force_rollback=True):
                await connection.execute(
                    "insert into write_probe (filling) values (%s)", (os.urandom(_PROBE_BYTES),)
                )
        except DatabaseLost as error:
            if not isinstance(error, WriteRefused):
                # Nobody answers: that is another fault, and it is told as one.
                log.debug("write_probe_unanswered", error=type(error).__name__)
            return False
        return True


def writes_refused() -> StoreFull:
    """What a caller is told when Postgres itself takes no writes."""
    return StoreFull("WRITES_REFUSED", "error.writes_refused")
