"""Blocking work in a thread that ends when its caller is cancelled."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def stoppable(work: Callable[[threading.Event], T]) -> T:
    """Run `work` in a thread. Cancelled, it sets the event and waits until the thread is done.

    A thread cannot be ended from outside, and one left behind would go on holding its files.
    """
    stop = threading.Event()
    running = asyncio.get_running_loop().run_in_executor(None, work, stop)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait({running})
        raise


class Stopped(Exception):
    """The caller was cancelled; nobody sees what would have been returned."""
