"""The way out of one running call: progress while it runs, then its result and nothing after."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import structlog
from crew.v1 import toolhost_pb2 as pb

from services.common.toolhost import exact_json

# Of one report; what is longer keeps its end, which is where the news is.
PROGRESS_CHARS = 64 * 1024

_log = structlog.get_logger(__name__)


class Outlet:
    """Writes one call's messages in order, one at a time.

    A tool that reports faster than the caller reads waits for its own report (back-pressure); a
    report after the end is dropped (PIP-040); and the end waits for every report that was taken
    before it (PIP-126). A caller that has gone away changes nothing for the tool (PIP-129).

    Args:
        write: Sends one message; raises when the caller is gone.
    """

    def __init__(self, write: Callable[[pb.RunOutput], Awaitable[None]]) -> None:
        self._write = write
        self._turn = asyncio.Lock()
        self._settled = False
        self._writing: set[asyncio.Task[None]] = set()

    async def progress(self, text: str, details: Mapping[str, Any] | None = None) -> None:
        """Report how far the call is. A cancelled tool leaves its last report whole."""
        if self._settled:
            return
        message = pb.RunOutput(
            progress=pb.RunProgress(text=text[-PROGRESS_CHARS:], details_json=exact_json.dumps(details or {}))
        )
        # Its own task: a write torn in the middle would leave the stream unusable for the result.
        writing = asyncio.create_task(self._report(message))
        self._writing.add(writing)
        writing.add_done_callback(self._writing.discard)
        await asyncio.shield(writing)

    async def settle(self) -> None:
        """Wait for what was reported and take nothing more."""
        async with self._turn:
            self._settled = True

    async def _report(self, message: pb.RunOutput) -> None:
        async with self._turn:
            if self._settled:
                return
            try:
                await self._write(message)
            except Exception as error:
                self._settled = True
                _log.info("progress has nobody to go to", problem=type(error).__name__)
