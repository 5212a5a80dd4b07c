"""Doing a call once: what is known of the calls that change something, by their idempotency key.

A call is marked `started` before its effect and gets its result after it. Whoever sends the key
again gets the stored result, or the answer that the effect may or may not have taken place
(PIP-090). Kept for 24 hours; of the results, the newest 64 MB.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from crew.v1 import toolhost_pb2 as pb

from services.common.toolhost import wire
from services.common.toolhost.contract import ToolResult
from services.common.toolhost.state import StateDatabase

KEPT_SECONDS = 24 * 3600
KEPT_RESULT_BYTES = 64 * 1024**2
# Ends of calls whose result was too large or too old to keep are remembered without it.
KEPT_CALLS = 200_000
# Pruned after so many new calls, or so many new bytes.
_PRUNED_CALLS = 256
_PRUNED_BYTES = 8 * 1024**2

_SCHEMA = """
create table if not exists calls (
    call_id text primary key,
    request text not null,
    started_at real not null,
    done integer not null default 0,
    result blob
);
create index if not exists calls_by_age on calls (started_at);
"""


@dataclass(frozen=True, slots=True)
class Claimed:
    """The key is new: the call may act."""


@dataclass(frozen=True, slots=True)
class Done:
    """The call acted before; `result` is None when it is no longer kept."""

    result: ToolResult | None


@dataclass(frozen=True, slots=True)
class Unfinished:
    """The call was begun before and nothing is known of its end."""


@dataclass(frozen=True, slots=True)
class Reused:
    """The key belongs to a call of another tool or with other arguments."""


Claim = Claimed | Done | Unfinished | Reused


class CallLedger:
    """The calls that change something, over restarts.

    Args:
        path: Of the SQLite file.
        clock: Seconds since the epoch.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._state = StateDatabase(path, _SCHEMA, "FULL")
        self._clock = clock
        self._calls_until_pruning = 0
        self._bytes_until_pruning = _PRUNED_BYTES

    async def claim(self, call_id: str, tool: str, arguments_json: str) -> Claim:
        """Mark the call as started unless it is known.

        Raises:
            sqlite3.Error: It cannot be marked, so it must not act.
        """
        request = hashlib.sha256(f"{tool}\0{arguments_json}".encode()).hexdigest()

        def work(connection: sqlite3.Connection) -> Claim:
            now = self._clock()
            if self._calls_until_pruning <= 0 or self._bytes_until_pruning <= 0:
                _prune(connection, now)
                self._calls_until_pruning = _PRUNED_CALLS
                self._bytes_until_pruning = _PRUNED_BYTES
            self._calls_until_pruning -= 1
            row = connection.execute(
                "select request, done, result, started_at from calls where call_id = ?", (call_id,)
            ).fetchone()
            if row is not None and row[3] >= now - KEPT_SECONDS:
                return _known(row[0] == request, row[1], row[2])
            connection.execute(
                "insert or replace into calls (call_id, request, started_at) values (?, ?, ?)",
                (call_id, request, now),
            )
            return Claimed()

        return await self._state.run(work)

    async def close_call(self, call_id: str, result: ToolResult) -> None:
        """Keep the end of a call. One that did not start is forgotten and may be sent again.

        Raises:
            sqlite3.Error: It cannot be kept: a repetition will hear that nothing is known.
        """
        if result.outcome == "not_started":
            await self.forget(call_id)
            return
        message = wire.result_message(result)
        kept = message.SerializeToString() if message.ByteSize() <= wire.PART_BYTES else None

        def work(connection: sqlite3.Connection) -> None:
            self._bytes_until_pruning -= len(kept or b"")
            connection.execute("update calls set done = 1, result = ? where call_id = ?", (kept, call_id))

        await self._state.run(work)

    async def forget(self, call_id: str) -> None:
        """Free the key of a call that had no effect."""
        await self._state.run(lambda c: c.execute("delete from calls where call_id = ?", (call_id,)))

    async def close(self) -> None:
        """Close the file."""
        await self._state.close()


def _known(same_request: bool, done: int, result: bytes | None) -> Claim:
    if not same_request:
        return Reused()
    if not done:
        return Unfinished()
    if result is None:
        return Done(None)
    return Done(wire.ResultAssembler().finish(pb.RunResult.FromString(result)))


def _prune(connection: sqlite3.Connection, now: float) -> None:
    connection.execute("delete from calls where started_at < ?", (now - KEPT_SECONDS,))
    connection.execute(
        "delete from calls where call_id in ("
        " select call_id from calls order by started_at desc limit -1 offset ?)",
        (KEPT_CALLS,),
    )
    connection.execute(
        "update calls set result = null where call_id in ("
        " select call_id from ("
        "  select call_id, sum(length(result)) over (order by started_at desc, call_id) as total from calls"
        " ) where total > ?)",
        (KEPT_RESULT_BYTES,),
    )
