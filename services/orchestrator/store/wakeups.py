"""LISTEN/NOTIFY between orchestrators: what makes a second replica look at once.

A notification is a hint and may be lost; whoever listens polls as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from services.orchestrator.store.pool import Connection, Database

CHANNEL = "crew_turns"
_RECONNECT_SECONDS = 0.5

log = structlog.get_logger(__name__)


async def notify(connection: Connection) -> None:
    """Wake every orchestrator when this transaction commits."""
    await connection.execute("select pg_notify(%s, '')", (CHANNEL,))


async def listen(
    database: Database,
    wake: Callable[[str], None],
    *,
    stopped: Callable[[], bool],
    channel: str = CHANNEL,
) -> None:
    """Call `wake` with the payload of every notification, until `stopped`.

    And with "" after each loss of the connection.
    """
    while not stopped():
        try:
            connection = await database.dedicated()
        except Exception as error:
            log.warning("wakeups_unreachable", error=type(error).__name__)
            await asyncio.sleep(_RECONNECT_SECONDS)
            continue
        try:
            await connection.execute(f"listen {channel}")
            # Whatever was announced while nobody listened is found by a full look.
            wake("")
            async for notification in connection.notifies():
                wake(notification.payload)
        except Exception as error:
            log.warning("wakeups_lost", error=type(error).__name__)
            await asyncio.sleep(_RECONNECT_SECONDS)
        finally:
            await _quietly(connection.close)


async def _quietly(close: Callable[[], Awaitable[None]]) -> None:
    try:
        await close()
    except Exception as error:
        log.debug("wakeups_close", error=type(error).__name__)
