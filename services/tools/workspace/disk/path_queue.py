"""One queue per file for everything that changes it (PIP-035)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class PathQueue:
    """Lets the changes of one file wait for each other; those of different files do not."""

    def __init__(self) -> None:
        self._lines: dict[str, tuple[asyncio.Lock, int]] = {}

    async def run(self, key: str, work: Callable[[], T]) -> T:
        """Do `work` in a thread when its turn has come.

        A caller cancelled while waiting leaves the queue. One cancelled while `work` runs keeps its
        place until it has ended, and gets its result: the change was made all the same (PIP-135).
        Such a caller finds the cancellation in its task's ``cancelling()``.

        Args:
            key: The canonical path.
            work: Reads and writes the file; blocking.

        Raises:
            asyncio.CancelledError: Cancelled before `work` began.
        """
        lock, waiting = self._lines.get(key, (asyncio.Lock(), 0))
        self._lines[key] = (lock, waiting + 1)
        try:
            async with lock:
                running = asyncio.get_running_loop().run_in_executor(None, work)
                while not running.done():
                    try:
                        await asyncio.shield(running)
                    except asyncio.CancelledError:
                        continue
                    except Exception:
                        break
                return running.result()
        finally:
            lock, waiting = self._lines.pop(key)
            if waiting > 1:
                self._lines[key] = (lock, waiting - 1)
