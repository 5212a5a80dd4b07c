"""A small SQLite file for what a tool host has to remember over a restart."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal, TypeVar

import structlog

T = TypeVar("T")
# FULL survives a power cut, NORMAL the death of the process.
Durability = Literal["FULL", "NORMAL"]

_log = structlog.get_logger(__name__)


class StateDatabase:
    """One SQLite file used from one thread of its own, so that no event loop waits for a disk.

    Args:
        path: Of the file; its folder is made, for its owner alone.
        schema: Statements that make the tables where they are missing.
        durability: What a finished transaction survives.
    """

    def __init__(self, path: Path, schema: str, durability: Durability) -> None:
        self._path = path
        self._schema = schema
        self._durability = durability
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=path.stem)
        self._connection: sqlite3.Connection | None = None

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do `work` in one transaction, which is undone when it raises.

        A cancelled caller waits for the end all the same: what it started is then settled.

        Raises:
            sqlite3.Error: The file cannot be read or written, such as on a full disk.
        """
        loop = asyncio.get_running_loop()
        running = loop.run_in_executor(self._thread, self._transact, work)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait({running})
            raise

    async def close(self) -> None:
        """Close the file; what runs is finished first."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, self._disconnect)
        self._thread.shutdown(wait=False)

    def _transact(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._connection is None:
            self._connection = self._open()
        with self._connection as connection:
            connection.execute("begin immediate")
            return work(connection)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> sqlite3.Connection:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            return self._connect()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise
            # A file that is not a database any more would stop every writing tool for good.
            _log.warning("a damaged state file was put aside", file=self._path.name, problem=str(error))
            self._path.replace(self._path.with_suffix(".damaged"))
            return self._connect()

    def _connect(self) -> sqlite3.Connection:
        self._path.touch(mode=0o600)
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("pragma journal_mode = wal")
            connection.execute(f"pragma synchronous = {self._durability}")
            connection.executescript(self._schema)
        except sqlite3.Error:
            connection.close()
            raise
        return connection
