"""What each conversation has read and written, so that nobody writes over what they have not seen.

Kept over a restart: the state of a file (its hash) by conversation and path, and of small files the
bytes, so that a refusal can show what has changed (FLD-067, FLD-022). Everything is bounded; what is
forgotten is refused as never read.
"""

from __future__ import annotations

import sqlite3
import time
import zlib
from pathlib import Path

import structlog

from services.common.toolhost.server import Released
from services.common.toolhost.state import StateDatabase
from services.tools.workspace.paths import alike

KEPT_FILES = 50_000
# Of one file, and of all together in compressed form.
KEPT_CONTENT_BYTES = 256 * 1024
KEPT_CONTENTS_BYTES = 32 * 1024**2
_PRUNED_EVERY = 200

_SCHEMA = """
create table if not exists seen (
    conversation text not null,
    path text not null,
    state text not null,
    at real not null,
    primary key (conversation, path)
) without rowid;
create index if not exists seen_by_age on seen (at);
create table if not exists contents (
    state text primary key,
    compressed blob not null,
    at real not null
);
"""

_log = structlog.get_logger(__name__)


class SeenFiles:
    """The states of files that conversations know.

    Args:
        path: Of the SQLite file.
    """

    def __init__(self, path: Path) -> None:
        self._state = StateDatabase(path, _SCHEMA, "NORMAL")
        self._until_pruning = 0

    async def saw(self, conversation: str, absolute: str, state: str, content: bytes | None = None) -> None:
        """The conversation now knows the file at `absolute` in this state.

        Failing to keep it is no failure of the call: a later write is refused until the file is read.
        """

        def work(connection: sqlite3.Connection) -> None:
            now = time.time()
            connection.execute(
                "insert or replace into seen values (?, ?, ?, ?)", (conversation, alike(absolute), state, now)
            )
            if content is not None and len(content) <= KEPT_CONTENT_BYTES:
                _keep(connection, state, content, now)
            self._until_pruning -= 1
            if self._until_pruning <= 0:
                self._until_pruning = _PRUNED_EVERY
                _prune(connection)

        try:
            await self._state.run(work)
        except (sqlite3.Error, OSError):
            _log.exception("what a conversation has seen cannot be kept", conversation_id=conversation)

    async def state_of(self, conversation: str, absolute: str) -> str | None:
        """The state in which the conversation knows the file; None if it does not."""
        row = await self._one(
            "select state from seen where conversation = ? and path = ?", conversation, alike(absolute)
        )
        return row if isinstance(row, str) else None

    async def content_of(self, state: str) -> bytes | None:
        """The bytes of a file in this state, if they are still kept."""
        row = await self._one("select compressed from contents where state = ?", state)
        return zlib.decompress(row) if isinstance(row, bytes) else None

    async def keep(self, state: str, content: bytes) -> None:
        """Keep the bytes of a state that somebody is about to decide on."""
        if len(content) > KEPT_CONTENT_BYTES:
            return
        try:
            await self._state.run(lambda connection: _keep(connection, state, content, time.time()))
        except (sqlite3.Error, OSError):
            _log.exception("the state of a file cannot be kept")

    async def release(self, kind: Released, name: str) -> None:
        """Forget what a conversation has seen when it is gone."""
        if kind == "conversation":
            await self._state.run(
                lambda connection: connection.execute("delete from seen where conversation = ?", (name,))
            )

    async def close(self) -> None:
        """Close the file."""
        await self._state.close()

    async def _one(self, query: str, *values: str) -> object:
        try:
            row = await self._state.run(lambda connection: connection.execute(query, values).fetchone())
        except (sqlite3.Error, OSError):
            _log.exception("what conversations have seen cannot be read")
            return None
        return row[0] if row else None


def _keep(connection: sqlite3.Connection, state: str, content: bytes, now: float) -> None:
    connection.execute(
        "insert or replace into contents values (?, ?, ?)", (state, zlib.compress(content, 1), now)
    )


def _prune(connection: sqlite3.Connection) -> None:
    connection.execute(
        "delete from seen where (conversation, path) in ("
        " select conversation, path from seen order by at desc limit -1 offset ?)",
        (KEPT_FILES,),
    )
    connection.execute(
        "delete from contents where state in ("
        " select state from ("
        "  select state, sum(length(compressed)) over (order by at desc, state) as total from contents"
        " ) where total > ?)",
        (KEPT_CONTENTS_BYTES,),
    )
