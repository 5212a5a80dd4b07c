"""The advisory lock by which the other orchestrators know that this one lives.

The lock sits on a connection that does nothing else; when the process dies, Postgres frees it
within milliseconds, long before a lease of 15 s would run out.
"""

from __future__ import annotations

import asyncio

from services.orchestrator.store.pool import Connection, Database
from services.orchestrator.store.turns import INSTANCE_LOCK

# Of the connection that holds the lock, before it counts as lost.
_ANSWER_SECONDS = 5.0


class Instance:
    """This process among the orchestrators that share one database.

    Attributes:
        number: Names the process in `turns.instance`; changes when the lock could not be had again.
    """

    def __init__(self, number: int, connection: Connection) -> None:
        self.number = number
        self._connection = connection

    @classmethod
    async def register(cls, database: Database, address: str = "") -> Instance:
        """Take a number and its lock.

        Args:
            database: Shared by all orchestrators.
            address: Where the others reach this process; empty when they do not.
        """
        connection = await database.dedicated()
        cursor = await connection.execute("select nextval('instance_numbers')::int as number")
        row = await cursor.fetchone()
        assert row is not None
        number = int(row["number"])
        await connection.execute("select pg_advisory_lock(%s, %s)", (INSTANCE_LOCK, number))
        # The sequence starts anew some day: a row of that number is a dead one's.
        await connection.execute(
            """
            insert into orchestrators (instance, address) values (%s, %s)
            on conflict (instance) do update set address = excluded.address, since = now()
            """,
            (number, address),
        )
        await connection.execute(
            """
            delete from orchestrators o where not exists (
                select from pg_locks l
                where l.locktype = 'advisory' and l.classid = %s and l.objid = o.instance and l.objsubid = 2
                    and l.granted
                    and l.database = (select oid from pg_database where datname = current_database()))
            """,
            (INSTANCE_LOCK,),
        )
        return cls(number, connection)

    async def alive(self) -> bool:
        """Whether the lock is still held; False when its connection is gone or silent."""
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                await self._connection.execute("select 1")
        except Exception:
            return False
        return True

    async def regain(self, database: Database) -> bool:
        """Take the same lock over a new connection; False when it is held, by a ghost of the old one.

        What was claimed under the number is then this process's as before; what another process took
        over meanwhile is not, and says so at the next write.
        """
        connection = await database.dedicated()
        cursor = await connection.execute(
            "select pg_try_advisory_lock(%s, %s) as held", (INSTANCE_LOCK, self.number)
        )
        row = await cursor.fetchone()
        if row is None or not row["held"]:
            await connection.close()
            return False
        await self.close()
        self._connection = connection
        return True

    async def close(self) -> None:
        """Free the lock: whoever is left takes over what this process did not end."""
        await self._connection.close()
