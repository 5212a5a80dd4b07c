"""One run of the chaos test: start, load, kills, quiet, verdict."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from tests.chaos.killing import Killer
from tests.chaos.load import Load
from tests.chaos.model import READ_FILE
from tests.chaos.promises import CHANGING, Aftermath, broken
from tests.fixtures.native_crew import NativeCrew, alive, native_crew, program

# What is promised, from the last kill on.
QUIET_SECONDS = 20.0
# How long is waited for it, so that a broken promise can be told from a crew that is stuck.
_PATIENCE_SECONDS = 120.0
# Nobody works on anything: no claim, nothing queued, no run that is running.
_BUSY = """
    select (select count(*) from turns) + (select count(*) from queued_messages)
        + (select count(*) from runs where status = 'running')
"""


@dataclass
class Report:
    """What happened and what was broken."""

    seed: int
    broken: list[str]
    killed: Counter[str]
    quiet_seconds: float
    facts: dict[str, int] = field(default_factory=dict)
    # Errors in the services' logs, by event.
    logged: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        killed = ", ".join(f"{name} {count}" for name, count in sorted(self.killed.items()))
        facts = ", ".join(f"{name} {count}" for name, count in self.facts.items())
        logged = ", ".join(f"{name} {count}" for name, count in self.logged.most_common()) or "none"
        return "\n".join(
            (
                f"seed {self.seed}",
                f"killed: {killed}",
                f"quiet {self.quiet_seconds:.1f} s after the last kill (promised: {QUIET_SECONDS:.0f})",
                facts,
                f"errors in logs: {logged}",
                *(f"BROKEN: {sentence}" for sentence in self.broken),
            )
        )


def run(*, kills: int, seconds: float, seed: int, keep: Path | None = None) -> Report:
    """Kill a crew at work and see what became of it.

    Args:
        kills: How often.
        seconds: Kills end after this time, whatever their number.
        seed: Of everything that is drawn.
        keep: Gets the services' logs, for a look afterwards.
    """
    with native_crew() as crew:
        violations = crew.root / "violations"
        violations.touch()
        options = ("--violations", str(violations), "--seed", str(seed))
        with program("tests.chaos.model", *options) as url:
            crew.environ |= {"OPENAI_BASE_URL": url, "MY_AGENT_ROUTES": "openai:chaos"}
            crew.start()
            (crew.workspace / READ_FILE).write_text("Something to read.\n" * 50)
            load, killer, quiet_seconds = asyncio.run(_under_load(crew, kills, seconds, seed))
            after = Aftermath.read(crew.layout.cluster.url("postgres", "crew"), crew.workspace)
            crew.stop()
        sentences = broken(after, load.record, violations.read_text())
        sentences += [f"process {pid} is left" for pid in sorted(_left(crew.root))]
        logs = [crew.root / "output", *crew.layout.logs.glob("*.log")]
        logged = _errors(logs)
        if keep is not None:
            for log in logs:
                (keep / log.name).write_bytes(log.read_bytes())
    if quiet_seconds > QUIET_SECONDS:
        sentences.append(f"the last turn ended {quiet_seconds:.1f} s after the last kill")
    return Report(seed, sentences, killer.killed, quiet_seconds, _facts(after, load), logged)


async def _under_load(crew: NativeCrew, kills: int, seconds: float, seed: int) -> tuple[Load, Killer, float]:
    load, killer = Load(crew.api, seed), Killer(crew, seed)
    await load.start()
    await killer.kill(kills, seconds)
    ending = asyncio.create_task(load.end())
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            # People still decide what is put before them; then nothing may be going on any more.
            await ending
            while await asyncio.to_thread(_busy, crew):
                await asyncio.sleep(0.05)
    except TimeoutError:
        ending.cancel()
    return load, killer, time.monotonic() - killer.last_at


def _busy(crew: NativeCrew) -> bool:
    try:
        with psycopg.connect(crew.layout.cluster.url("postgres", "crew"), connect_timeout=5) as connection:
            row = connection.execute(_BUSY).fetchone()
            return row is None or row[0] > 0
    except psycopg.OperationalError:
        return True


def _facts(after: Aftermath, load: Load) -> dict[str, int]:
    calls = list(after.calls())
    unknown = sum(
        result is not None and result["is_error"] and "may or may not" in result["content"]
        for _, _, result in calls
    )
    return {
        "messages": len(load.record.sent),
        "turns": len(after.runs),
        "taken over": sum(row["recovered_from"] is not None for row in after.runs),
        "calls": len(calls),
        "changing calls": sum(call["name"] in CHANGING for _, call, _ in calls),
        "closed as unknown": unknown,
        "decisions": len(load.record.decided),
        "stops": load.record.stops,
    }


def _left(root: Path) -> set[int]:
    """Processes of the crew that outlived it, by where they work or what they were started with."""
    numbers = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return {pid for pid in numbers if alive(pid) and _works_in(pid, root)}


def _works_in(pid: int, root: Path) -> bool:
    try:
        folder = Path(f"/proc/{pid}/cwd").readlink()
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return folder.is_relative_to(root) or str(root).encode() in command


def _errors(logs: Iterable[Path]) -> Counter[str]:
    found: Counter[str] = Counter()
    for log in logs:
        for line in log.read_text(errors="replace").splitlines():
            if '"level":"error"' in line or '"level":"critical"' in line:
                entry = json.loads(line)
                found[f"{log.stem}: {str(entry.get('event'))[:80]}"] += 1
            # Postgres calls it FATAL when somebody knocks while it recovers.
            elif line.startswith(("Traceback", "PANIC")):
                found[f"{log.stem}: {line[:80]}"] += 1
    return found
