"""What the caller says, read as it comes, so that its silence and its leaving are both noticed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import TypeVar

from crew.v1 import script_sandbox_pb2 as pb

from services.script_sandbox.bridge.faults import CallerGone, ProtocolFault

T = TypeVar("T")


class Inbox:
    """The messages of one call, one read ahead.

    Args:
        messages: Of the stream.
    """

    def __init__(self, messages: AsyncIterator[pb.ToSandbox]) -> None:
        self._messages = messages
        self._next: asyncio.Task[pb.ToSandbox] | None = None

    async def take(self, seconds: float) -> pb.ToSandbox:
        """The next message.

        Raises:
            CallerGone: The caller's side has ended.
            TimeoutError: None came in time.
        """
        reading = self._reading()
        done, _ = await asyncio.wait([reading], timeout=seconds)
        if not done:
            raise TimeoutError
        self._next = None
        return _message(reading)

    async def meanwhile(self, work: Awaitable[T], seconds: float) -> T:
        """Do `work` while nothing may be said.

        Raises:
            CallerGone: The caller left or cancelled meanwhile.
            ProtocolFault: It answered what was not asked.
            TimeoutError: The work took longer than `seconds`.
        """
        working = asyncio.ensure_future(work)
        reading = self._reading()
        try:
            await asyncio.wait([working, reading], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            if not reading.done():
                raise TimeoutError
            if _message(reading).WhichOneof("message") == "cancel":
                raise CallerGone
            raise ProtocolFault("an answer that was not asked for")
        finally:
            if not working.done():
                working.cancel()

    async def close(self) -> None:
        """Stop reading."""
        if self._next is not None:
            self._next.cancel()
            await asyncio.wait([self._next])

    def _reading(self) -> asyncio.Task[pb.ToSandbox]:
        if self._next is None:
            self._next = asyncio.ensure_future(_one(self._messages))
        return self._next


async def _one(messages: AsyncIterator[pb.ToSandbox]) -> pb.ToSandbox:
    return await anext(messages)


def _message(reading: asyncio.Task[pb.ToSandbox]) -> pb.ToSandbox:
    try:
        return reading.result()
    except (StopAsyncIteration, RuntimeError, asyncio.CancelledError):
        # A coroutine that ends by StopAsyncIteration is shown as a RuntimeError.
        raise CallerGone from None
