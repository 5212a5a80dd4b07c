"""Running ``crew up`` with small services, as a process of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

CODE = """
import os, sys
from services.cli.native import crew
from services.cli.native.environment import handed_over, plain, start_again
from services.cli.native.programs import Service
from services.common.start import StartError
from tests.fixtures.services import SmallSettings

variables = os.memfd_create("variables")
os.write(variables, b'{"OPENAI_API_KEY": "sk-not-for-everybody", "PATH": "/usr/bin"}')
crew.READY_SECONDS = float(os.environ.get("READY_SECONDS", crew.READY_SECONDS))
names = sys.argv[1].split(",")
services = [Service(name, "tests.fixtures.services", SmallSettings) for name in names]
try:
    sys.exit(crew.up(dict(os.environ), variables, services))
except StartError as error:
    print(error, file=sys.stderr)
    sys.exit(1)
"""
START_SECONDS = 60.0


class Crew:
    """A running ``crew up``."""

    def __init__(self, process: subprocess.Popen[str], home: Path, run: Path, output: Path) -> None:
        self.process = process
        self.home = home
        self.run = run
        self._output = output

    @property
    def output(self) -> str:
        return self._output.read_text()

    def wait_for(self, words: str) -> None:
        wait_until(lambda: words in self.output or self.process.poll() is not None)
        assert words in self.output, self.output

    def children(self) -> dict[str, int]:
        """Process ids of the direct children by what they are."""
        found: dict[str, int] = {}
        for pid in children_of(self.process.pid):
            listed = (self.run / "pids").glob("*") if (self.run / "pids").is_dir() else ()
            name = next((path.name for path in listed if path.read_text() == str(pid)), "")
            found[name or comm(pid)] = pid
        return found

    def pid(self, name: str) -> int:
        """Process id of a service that is ready now."""
        wait_until(lambda: alive(int(_read(self.run / "pids" / name) or "0")))
        return int(_read(self.run / "pids" / name))

    def tree(self) -> list[int]:
        """The process and everything below it."""
        found, waiting = [], [self.process.pid]
        while waiting:
            pid = waiting.pop()
            found.append(pid)
            waiting.extend(children_of(pid))
        return found

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(30)


@contextlib.contextmanager
def running_crew(
    root: Path, *, names: str = "tools,orchestrator,gateway", ready: bool = True, **environ: str
) -> Iterator[Crew]:
    """Start a crew in `root`; whatever of it is left at the end is killed."""
    home, run, output = root / "home", root / "run", root / "output"
    settings = {
        "MY_AGENT_HOME": str(home),
        "MY_AGENT_RUN_DIR": str(run),
        "MY_AGENT_PORT": "0",
        "MY_AGENT_GRPC_PORT": "0",
        "PYTHONPATH": str(Path(__file__).parents[3]),
        "PATH": os.environ["PATH"],
    }
    with output.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-c", CODE, names], env=settings | environ, stdout=file, stderr=file, text=True
        )
    crew = Crew(process, home, run, output)
    try:
        if ready:
            crew.wait_for("is running")
        yield crew
    finally:
        left = crew.tree() if process.poll() is None else []
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait(30)


def wait_until(condition: Callable[[], bool], seconds: float = START_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    state = _read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return bool(state) and state[0] != "Z"


def children_of(pid: int) -> list[int]:
    return [int(child) for child in _read(Path(f"/proc/{pid}/task/{pid}/children")).split()]


def comm(pid: int) -> str:
    return _read(Path(f"/proc/{pid}/comm")).strip()


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
