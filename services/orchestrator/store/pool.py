"""The connections to Postgres."""

from __future__ import annotations

import asyncio
import select
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from services.common.errors import Unavailable

Row = dict[str, Any]
Connection = psycopg.AsyncConnection[Row]

# A connection that waits on a dead client's lock or forgets to end would hold a conversation.
_SESSION = (
    "-c statement_timeout=15s -c idle_in_transaction_session_timeout=30s "
    "-c client_connection_check_interval=2s -c timezone=UTC"
)

# How long a start waits for Postgres, which may be recovering from a crash.
_START_SECONDS = 30.0
_AGAIN_SECONDS = 0.2

# Postgres answers and takes no writes: its disk is full, or it is a standby or set to read only.
WriteRefused = (psycopg.errors.DiskFull, psycopg.errors.ReadOnlySqlTransaction)
# Nothing was written, whatever the reason.
DatabaseLost = (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout, *WriteRefused)


class Database:
    """A pool of connections and the ways to use one.

    Args:
        url: Connection string of the role without rights over the schema.
        size: The most connections held at once.
        wait_seconds: How long a caller waits for a free connection.
        timezone: IANA name of the zone in which the person's days are counted (TRN-003).
    """

    def __init__(self, url: str, *, size: int = 12, wait_seconds: float = 10, timezone: str = "UTC") -> None:
        self.url = url
        self._pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
            url,
            connection_class=psycopg.AsyncConnection[Row],
            kwargs={
                "row_factory": dict_row,
                "autocommit": True,
                "options": f"{_SESSION} -c crew.timezone={timezone}",
            },
            min_size=min(3, size),
            max_size=size,
            timeout=wait_seconds,
            reconnect_timeout=5,
            check=_check,
            open=False,
        )

    async def open(self) -> None:
        """Connect, as soon as Postgres answers.

        Raises:
            PoolTimeout: It did not within `_START_SECONDS`.
        """
        # The pool itself stops trying after `reconnect_timeout`, until somebody asks for a connection.
        ends_at = time.monotonic() + _START_SECONDS
        while not await self._answers():
            if time.monotonic() > ends_at:
                raise PoolTimeout(f"no connection within {_START_SECONDS:.0f} s")
            await asyncio.sleep(_AGAIN_SECONDS)
        await self._pool.open(wait=True, timeout=_START_SECONDS)

    async def close(self) -> None:
        """Give every connection back and end the pool."""
        await self._pool.close(timeout=5)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection in autocommit, for statements that stand alone."""
        async with self._pool.connection() as connection:
            yield connection

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """A connection inside one transaction: all of it is committed, or none."""
        async with self._pool.connection() as connection, connection.transaction():
            yield connection

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Connection]:
        """A connection whose reads all see the same moment."""
        async with self._pool.connection() as connection, connection.transaction():
            await connection.execute("set transaction isolation level repeatable read, read only")
            yield connection

    async def reachable(self) -> bool:
        """Whether Postgres answers within two seconds."""
        try:
            async with self._pool.connection(timeout=2) as connection:
                await connection.execute("select 1")
        except DatabaseLost:
            return False
        return True

    async def _answers(self) -> bool:
        try:
            connection = await self.dedicated()
        except psycopg.OperationalError:
            return False
        await connection.close()
        return True

    async def dedicated(self) -> Connection:
        """A connection outside the pool, for locks and LISTEN; the caller closes it."""
        connection: Connection = await psycopg.AsyncConnection.connect(
            self.url, autocommit=True, row_factory=dict_row, connect_timeout=5, options="-c timezone=UTC"
        )
        return connection


async def _check(connection: Connection) -> None:
    """Ask a connection of the pool whether it lives, when there is reason to doubt it.

    A server that ended, crashed or cut the connection has left something to read on it, be it only the
    end; a connection that nobody uses has nothing. So a living one costs no round trip.

    Raises:
        OperationalError: It is gone.
    """
    doubt = select.poll()
    doubt.register(connection.fileno(), select.POLLIN)
    if doubt.poll(0):
        await AsyncConnectionPool.check_connection(connection)


def database_unavailable() -> Unavailable:
    """The refusal that a caller gets while Postgres does not answer."""
    return Unavailable("DATABASE_UNAVAILABLE", "error.database_unavailable")
