"""Workers that stand ready: confined, with the prelude read, each for one script (SCR-247)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from importlib.metadata import version
from pathlib import Path
from typing import Self

import structlog
from pydantic_monty import AsyncMonty, MontyError, ResourceLimits

from services.script_sandbox.engine.interpreter import Interpreter
from services.script_sandbox.limits import Limits

WARM = 4
# More scripts at once wait for a place: each may hold a quarter of a gigabyte.
RUNNING = 24
ENGINE = f"monty-{version('pydantic-monty')}"

PRELUDE = Path(__file__).with_name("prelude.monty").read_text("utf-8")
# Frames of the engine: what a script's own calls may nest is counted by the prelude, and values may
# nest some two hundred levels beneath them.
_RECURSION = 320
# Requests end at 25 calls; this is for a worker that is not believed.
_REQUESTS = 10_000
_RETRY_SECONDS = 1.0

_log = structlog.get_logger(__name__)


class Workers:
    """A pool of interpreters behind the fence.

    Args:
        launcher: The program that starts one behind the fence.
        limits: Of scripts.
        warm: How many stand ready.
    """

    def __init__(self, launcher: Path, limits: Limits, *, warm: int = WARM) -> None:
        self._pool = AsyncMonty(
            binary_path=launcher,
            min_processes=0,
            max_processes=RUNNING + warm,
            max_checkouts_per_worker=1,
            turn_duration_limit_grace=1.0,
        )
        self._limits = limits
        self._wanted = warm
        self._ready: list[Interpreter] = []
        self._places = asyncio.Semaphore(RUNNING)
        self._running = 0
        self._filling: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self._pool.__aenter__()
        self._fill()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._filling is not None:
            self._filling.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._filling
        for interpreter in self._ready:
            await interpreter.close()
        self._ready.clear()
        await self._pool.__aexit__(None, None, None)

    @property
    def warm(self) -> int:
        """Interpreters that stand ready now."""
        return len(self._ready)

    @property
    def running(self) -> int:
        """Interpreters that have a script now."""
        return self._running

    @contextlib.asynccontextmanager
    async def interpreter(self, limits: Limits, *, blank: bool = False) -> AsyncIterator[Interpreter]:
        """An interpreter for one script; waits for a place, ends the worker afterwards.

        Args:
            limits: Of this script; memory is the worker's, so another amount needs a fresh one.
            blank: Without the prelude, for a paused program that brings its own.
        """
        async with self._places:
            self._running += 1
            taken: Interpreter | None = None
            try:
                if not blank and self._ready and limits.memory_bytes == self._limits.memory_bytes:
                    taken = self._ready.pop(0)
                    self._fill()
                else:
                    taken = await self._start(limits, blank=blank)
                yield taken
            finally:
                self._running -= 1
                if taken is not None:
                    await asyncio.shield(taken.close())

    async def _start(self, limits: Limits, *, blank: bool = False) -> Interpreter:
        bounds: ResourceLimits = {
            "max_memory": limits.memory_bytes,
            "max_turn_duration_secs": self._limits.alone_seconds,
            "max_recursion_depth": _RECURSION,
            "max_suspensions": _REQUESTS,
        }
        checkout = self._pool.checkout(script_name="script", limits=bounds, assert_message_annotations=False)
        session = await checkout.__aenter__()
        interpreter = Interpreter(checkout, session)
        try:
            if not blank:
                await session.feed_run(PRELUDE)
        except BaseException:
            await interpreter.close()
            raise
        return interpreter

    def _fill(self) -> None:
        if self._filling is None or self._filling.done():
            self._filling = asyncio.create_task(self._fill_up())

    async def _fill_up(self) -> None:
        while len(self._ready) < self._wanted:
            try:
                self._ready.append(await self._start(self._limits))
            except (MontyError, OSError, TimeoutError) as error:
                _log.warning("script_worker_start", problem=str(error)[:200])
                await asyncio.sleep(_RETRY_SECONDS)
