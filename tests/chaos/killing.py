"""Who is killed, and when."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import time
from collections import Counter

from tests.fixtures.native_crew import NativeCrew, alive

# Between two kills.
_LEAST_SECONDS, _MOST_SECONDS = 0.2, 1.5
# A crew that never gets up does nothing that could go wrong: most kills wait until it serves again.
_WAITING_SHARE = 0.8
_UP_SECONDS = 15.0
# Every so many kills it is `crew up` itself, which is then started again.
_SUPERVISOR_EVERY = 25


class Killer:
    """Kills services of a crew at random moments.

    Args:
        crew: Running.
        seed: Of the choices.
    """

    def __init__(self, crew: NativeCrew, seed: int) -> None:
        self.killed: Counter[str] = Counter()
        self.last_at = time.monotonic()
        self._crew = crew
        self._random = random.Random(f"{seed}/kills")

    async def kill(self, kills: int, seconds: float) -> None:
        """Kill so many times, but not for longer than `seconds`."""
        ends_at = time.monotonic() + seconds
        for number in range(1, kills + 1):
            if self._random.random() < _WAITING_SHARE:
                await self._up()
            await asyncio.sleep(self._random.uniform(_LEAST_SECONDS, _MOST_SECONDS))
            if time.monotonic() > ends_at:
                return
            if number % _SUPERVISOR_EVERY == _SUPERVISOR_EVERY // 2:
                await self._kill_supervisor()
            else:
                await self._kill_service()

    async def _up(self) -> None:
        """Wait until everything is there, but not for ever."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_UP_SECONDS):
                while not await asyncio.to_thread(self._crew.healthy):
                    await asyncio.sleep(0.05)

    async def _kill_service(self) -> None:
        """Kill a service that is up, now and then two at once."""
        while not (up := await asyncio.to_thread(self._crew.pids)):
            await asyncio.sleep(0.05)
        both = len(up) > 1 and self._random.random() < 0.1
        for name in self._random.sample(sorted(up), k=2 if both else 1):
            with contextlib.suppress(ProcessLookupError):
                os.kill(up[name], signal.SIGKILL)
                self.killed[name] += 1
                self.last_at = time.monotonic()

    async def _kill_supervisor(self) -> None:
        """Kill `crew up`: everything below it goes with it, and the next start goes on."""
        tree = self._crew.tree()
        os.kill(self._crew.supervisor, signal.SIGKILL)
        self.killed["crew up"] += 1
        while any(alive(pid) for pid in tree - {self._crew.supervisor}):
            await asyncio.sleep(0.02)
        await asyncio.to_thread(self._crew.start)
        self.last_at = time.monotonic()
