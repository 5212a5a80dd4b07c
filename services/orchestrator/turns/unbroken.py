"""Work that a stop of the turn does not cut in two."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def unbroken(step: Coroutine[Any, Any, T]) -> T:
    """`step` to its end; a stop that comes meanwhile is passed on after it.

    What is written and what this process believes to be written then never differ: a stop between a
    commit and what follows from it in memory would be handled as if nothing had been stored.
    """
    task = asyncio.create_task(step)
    stopped = False
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            stopped = True
    if stopped:
        # Whoever handles the stop finds out by itself what cannot be written any more.
        if not task.cancelled():
            task.exception()
        raise asyncio.CancelledError
    return task.result()
