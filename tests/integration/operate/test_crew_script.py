"""The ``crew`` script in a fresh clone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def crew(clone: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MY_AGENT_", "UV_", "VIRTUAL_ENV"))
    }
    return subprocess.run(
        [str(clone / "crew"), *words],
        env=clean | environ,
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
