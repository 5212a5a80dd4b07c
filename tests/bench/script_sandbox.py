"""Measures the script sandbox alone: ``python -m tests.bench.script_sandbox``.

From the caller's side of the stream: check, lowering, interpreter, answers. It never fails on a time.
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from services.script_sandbox.engine.workers import WARM
from tests.bench.figures import Figure, percentile, surroundings, table
from tests.bench.memory import pss_mb
from tests.fixtures.script_sandbox import Caller, SandboxProcess, sandbox_process

ROUNDS = 40
# A worker is used once; a burst is served from those that stand ready.
PAUSE_SECONDS = 0.25
SETTLE_SECONDS = 5.0
AT_ONCE = 20


async def measure(sandbox: SandboxProcess) -> list[Figure]:
    """What one script costs, what many do to each other, and what idling takes."""
    caller = Caller(sandbox)
    try:
        await _seconds(caller, "print(1)")
        await asyncio.sleep(SETTLE_SECONDS)
        figures = []
        if os.geteuid() == 0:
            whole = sum(pss_mb(pid) for pid in (sandbox.process_id, *sandbox.children()))
            figures.append(Figure("idle memory", whole, "MB", 60.0, note=f"PSS, {WARM} warm workers"))
        short = await _series(caller, "print(1)")
        batch = await _series(caller, "print(tools.batch([{'tool': 'a'}] * 10))")
        figures += [
            Figure("print(1), p50", percentile(short, 0.5) * 1000, "ms", 8.0),
            Figure("print(1), p99", percentile(short, 0.99) * 1000, "ms", 30.0),
            Figure(
                "ten batched calls, p50", percentile(batch, 0.5) * 1000, "ms", 40.0, note="answered at once"
            ),
            Figure("a million rounds", await _seconds(caller, "for i in range(1000000): pass"), "s", 0.5),
            Figure(
                "a million additions", await _seconds(caller, "x = 0\nfor i in range(1000000): x += i"), "s"
            ),
        ]
        await asyncio.sleep(SETTLE_SECONDS)
        busy = "x = 0\nfor i in range(300000): x += i"
        times = await asyncio.gather(*(_seconds(caller, busy) for _ in range(AT_ONCE)))
        figures.append(
            Figure(f"{AT_ONCE} scripts at once, slowest", max(times), "s", note=f"fastest {min(times):.2f} s")
        )
        return figures
    finally:
        await caller.close()


async def _series(caller: Caller, script: str) -> list[float]:
    times = []
    for _ in range(ROUNDS):
        times.append(await _seconds(caller, script))
        await asyncio.sleep(PAUSE_SECONDS)
    return times


async def _seconds(caller: Caller, script: str) -> float:
    began = time.perf_counter()
    assert (await caller.run(script)).finished is not None
    return time.perf_counter() - began


def main() -> None:
    """Measure and print."""
    with TemporaryDirectory(prefix="crew-b-") as folder, sandbox_process(Path(folder)) as sandbox:
        print(table(asyncio.run(measure(sandbox))))
    print(surroundings())


if __name__ == "__main__":
    main()
