"""What the crew holds in memory while nothing happens."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from tests.bench.bench import Bench
from tests.bench.figures import Figure
from tests.fixtures.native_crew import children_of

SETTLE_SECONDS = 10.0
_TICKS = os.sysconf("SC_CLK_TCK")


async def measure(bench: Bench) -> list[Figure]:
    """Proportional set size of each service and its children, Postgres left out."""
    bench.ensure_running()
    await asyncio.sleep(SETTLE_SECONDS)
    if os.geteuid() != 0:
        # The services hide their memory from other processes of the same user.
        return [Figure("idle memory", 0.0, "MB", note="not measured: only root may read it")]
    pids = bench.crew.pids()
    postgres = _below(pids.pop("postgres"))
    before = {name: _cpu_seconds(pid) for name, pid in pids.items()}
    await asyncio.sleep(SETTLE_SECONDS)
    busy = sum(_cpu_seconds(pid) - before[name] for name, pid in pids.items()) / SETTLE_SECONDS
    by_service = {name: sum(pss_mb(each) for each in _below(pid)) for name, pid in sorted(pids.items())}
    services = {pid for root in pids.values() for pid in _below(root)}
    others = bench.crew.tree() - services - postgres
    by_service["crew up"] = sum(pss_mb(pid) for pid in others)
    return [
        Figure(
            "idle memory, all services", sum(by_service.values()), "MB", 300.0, note="PSS, without Postgres"
        ),
        *(Figure(f"  {name}", value, "MB") for name, value in by_service.items()),
        Figure("  Postgres beside them", sum(pss_mb(pid) for pid in postgres), "MB"),
        Figure("idle processor time", busy * 100, "%", note=f"of one core, over {SETTLE_SECONDS:.0f} s"),
    ]


def _below(pid: int) -> set[int]:
    return {pid}.union(*(_below(child) for child in children_of(pid)))


def pss_mb(pid: int) -> float:
    """Proportional set size of a process; 0 when it is gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
