"""The ``crew`` script in a fresh clone."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.integration.operate.crew import wait_until

ROOT = Path(__file__).parents[3]


def clean_environ() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MY_AGENT_", "UV_", "VIRTUAL_ENV"))
    }


def crew(clone: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(clone / "crew"), *words],
        env=clean_environ() | environ,
        # Not the clone: the command works from anywhere.
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The files that git knows, as they are now."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in listed.stdout.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (tmp_path / "a clone" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / "a clone" / name)
    return tmp_path / "a clone"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_fresh_clone_makes_its_environment_once(clone: Path) -> None:
    first = crew(clone, "version")
    if first.returncode != 0 and "network" in first.stderr:
        pytest.skip("the package index cannot be reached")
    assert first.returncode == 0, first.stderr
    assert first.stdout.startswith("my-agent-crew ")
    assert "installing uv" in first.stderr
    assert "bringing the environment up to date" in first.stderr

    second = crew(clone, "version")
    assert (second.stdout, second.stderr) == (first.stdout, "")

    with (clone / "protos/crew/v1/system.proto").open("a") as file:
        file.write("\nmessage AddedLater {}\n")
    third = crew(clone, "version")
    assert third.returncode == 0, third.stderr
    assert "bringing the environment up to date" in third.stderr
    assert "installing uv" not in third.stderr
    assert "AddedLater" in (clone / "generated/crew/v1/system_pb2.pyi").read_text()

    # A folder of the same name where the command is typed is not ours.
    (clone / "elsewhere" / "services").mkdir(parents=True)
    (clone / "elsewhere" / "services" / "__init__.py").write_text("raise SystemExit('taken for ours')")
    done = subprocess.run(
        ["../crew", "version"],
        cwd=clone / "elsewhere",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout == first.stdout

    (clone / "link").symlink_to(clone / "crew")
    done = subprocess.run(
        [str(clone / "link"), "version"], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout == first.stdout


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_first_command_of_a_fresh_clone_brings_every_service_up(clone: Path, tmp_path: Path) -> None:
    """With what that command installs, and none of what the tests have besides."""

    def told() -> str:
        return (tmp_path / "output").read_text()

    with tempfile.TemporaryDirectory() as home, (tmp_path / "output").open("w") as output:
        environ = clean_environ() | {
            "MY_AGENT_HOME": f"{home}/home",
            "MY_AGENT_PORT": "0",
            "MY_AGENT_GRPC_PORT": "0",
            "MY_AGENT_ROUTES": "fake:echo",
        }
        up = subprocess.Popen(
            [str(clone / "crew"), "up"], cwd="/", env=environ, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            wait_until(lambda: "is running" in told() or up.poll() is not None, 300)
            if up.poll() is not None and "network" in told():
                pytest.skip("the package index cannot be reached")
            assert "is running" in told(), told()
            script = json.dumps({"script": "print(6 * 7)"})
            sent = crew(clone, "send", f"/tool tool_script {script}", MY_AGENT_HOME=f"{home}/home")
            assert (sent.returncode, "42" in sent.stdout) == (0, True), sent.stdout + sent.stderr
            up.send_signal(signal.SIGINT)
            assert up.wait(30) == 0
        finally:
            up.kill()
            up.wait(30)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("exit 1", "Python 3.11 or newer is needed"),
        (
            f'case "$2" in *ensurepip*) exit 1;; esac\nexec {sys.executable} "$@"',
            "sudo apt install python3-venv",
        ),
    ],
)
def test_what_python_lacks_is_named_with_the_command_that_adds_it(
    clone: Path, tmp_path: Path, script: str, words: str
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "dirname", "readlink", "mkdir", "cat", "cksum", "find", "sort", "rm", "mv"):
        (programs / name).symlink_to(shutil.which(name) or name)
    (programs / "python3").write_text(f"#!/bin/sh\n{script}\n")
    (programs / "python3").chmod(0o755)
    done = crew(clone, "version", PATH=str(programs))
    assert done.returncode == 1
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (clone / ".venv").exists()


def test_the_script_is_plain_posix_shell() -> None:
    assert subprocess.run(["sh", "-n", str(ROOT / "crew")], check=False).returncode == 0
    dash = shutil.which("dash")
    if dash is None:
        pytest.skip("dash is not installed")
    assert subprocess.run([dash, "-n", str(ROOT / "crew")], check=False).returncode == 0
