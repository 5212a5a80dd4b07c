"""The real crew by its real command: one start, and everything in it killed once."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.operate.crew import Crew, alive, children_of, wait_until

KEY = "sk-or-a-key-that-only-one-process-holds"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


class Whole(Crew):
    """A crew started by ``crew up``, with the settings that commands need to find it."""

    def __init__(self, root: Path) -> None:
        self.port = free_port()
        clean = {name: value for name, value in os.environ.items() if not name.startswith("MY_AGENT_")}
        self.environ = clean | {
            "MY_AGENT_HOME": str(root / "home"),
            "MY_AGENT_RUN_DIR": str(root / "run"),
            "MY_AGENT_ROUTES": "fake:echo",
            "OPENROUTER_API_KEY": KEY,
        }
        self.command = [sys.executable, "-P", "-m", "services.cli.main"]
        up = ["up", "--port", str(self.port), "--grpc-port", str(free_port())]
        with (root / "output").open("w") as file:
            process = subprocess.Popen(
                [*self.command, *up], env=self.environ, stdout=file, stderr=file, text=True
            )
        super().__init__(process, root / "home", root / "run", root / "output")

    def do(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.command, *words], env=self.environ, capture_output=True, text=True, check=False, timeout=60
        )

    def healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/health", timeout=10) as answer:
                return bool(json.load(answer)["status"] == "ok")
        except (OSError, urllib.error.URLError, json.JSONDecodeError):
            return False


@pytest.fixture
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    crew = Whole(tmp_path_factory.mktemp("w"))
    try:
        crew.wait_for("is running")
        yield crew
    finally:
        for pid in crew.tree() if crew.process.poll() is None else []:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        crew.process.wait(30)


@pytest.mark.spec("AGT-006")
@pytest.mark.timeout(300)
def test_the_first_start_makes_a_home_without_any_profile(whole: Whole) -> None:
    made = {path.name for path in whole.home.iterdir()}
    assert made >= {"config.yaml", "agent.yaml", "users", "workspace", "agents"}
    assert (whole.home / "users" / "owner").is_dir()
    assert whole.stop() == 0


@pytest.mark.timeout(300)
def test_every_process_killed_once_is_back_and_the_crew_answers(whole: Whole) -> None:
    wait_until(whole.healthy)
    assert f"http://127.0.0.1:{whole.port}" in whole.output
    first = whole.do("send", "hello")
    assert (first.returncode, first.stdout.strip()) == (0, "hello"), first.stderr

    victims = children_of(whole.process.pid)
    assert len(victims) == 5
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda pid=pid: not alive(pid))
        wait_until(lambda: len([child for child in children_of(whole.process.pid) if alive(child)]) == 5)
        wait_until(whole.healthy)
    wait_until(lambda: whole.do("send", "again").stdout.strip() == "again")
    for name in ("postgres", "orchestrator", "tools", "script_sandbox", "gateway"):
        assert f"{name} was ended by signal 9" in whole.output

    doctor = whole.do("doctor")
    assert doctor.returncode == 0, doctor.stdout
    for name in ("orchestrator", "database", "tools"):
        assert f"✓ {name} answers" in doctor.stdout

    tree = whole.tree()
    assert whole.stop(signal.SIGTERM) == 0
    assert not [pid for pid in tree if alive(pid)]


@pytest.mark.timeout(300)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may look into processes that hide")
def test_a_key_is_in_no_environment_no_argument_and_no_log(whole: Whole) -> None:
    assert whole.do("send", "hello").returncode == 0
    tree = whole.tree()
    assert len(tree) > 5
    for pid in tree:
        for name in ("environ", "cmdline"):
            assert KEY.encode() not in Path(f"/proc/{pid}/{name}").read_bytes()
    for name in ("postgres", "crew_owner", "crew_app"):
        password = (whole.home / "secrets" / "postgres" / f"{name}.password").read_text().strip()
        for pid in tree:
            assert password.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
        for log in (whole.home / "logs").iterdir():
            assert password not in log.read_text()
    for log in (whole.home / "logs").iterdir():
        assert KEY not in log.read_text()
    assert KEY not in whole.output
    assert whole.stop() == 0
