"""The first service of the deployment, on real volumes and folders with every wrong right."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.compose.engine import Stack, docker

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def stack(engine: None) -> Iterator[Stack]:
    made = Stack(f"crewprep{uuid.uuid4().hex[:8]}")
    try:
        yield made
    finally:
        made.down(volumes=True)


def _prepare(stack: Stack) -> tuple[int, str]:
    """The code it ended with, and what it said to the person."""
    started = time.monotonic()
    done = stack.compose("run", "--rm", "--no-deps", "prepare", check=False)
    assert time.monotonic() - started < 10 + 20, "the engine's own time included"
    return done.returncode, done.stdout + done.stderr


def _owner(stack: Stack, volume: str) -> str:
    shown = docker(
        "run", "--rm", "--user", "0:0", "--network", "none", "--entrypoint", "stat",
        "-v", f"{stack.project}_{volume}:/v", "my-agent-crew/cli:local", "-c", "%u:%g %a", "/v",
    )  # fmt: skip
    return shown.stdout.strip()


@pytest.mark.spec("FLD-045")
@pytest.mark.parametrize("uid", ["1000", "1001", "501"])
def test_fresh_volumes_go_to_whoever_runs_the_crew(stack: Stack, uid: str) -> None:
    stack.environ.update(CREW_UID=uid, CREW_GID=uid)
    code, said = _prepare(stack)
    assert code == 0, said
    assert _owner(stack, "home") == f"{uid}:{uid} 700"
    assert _owner(stack, "workspaces") == f"{uid}:{uid} 2775"
    assert _owner(stack, "secrets-tools") == f"{uid}:{uid} 700"
    assert _owner(stack, "database") == "999:999 700"
    code, said = _prepare(stack)
    assert code == 0, said


@pytest.mark.spec("FLD-045")
@pytest.mark.skipif(os.getuid() != 0, reason="makes a folder of root")
def test_a_folder_of_root_stops_the_start_with_one_command_that_repairs_it(
    stack: Stack, tmp_path: Path
) -> None:
    home = tmp_path / "our home"
    home.mkdir(mode=0o755)
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    stack.environ["CREW_HOME"] = str(home)
    code, said = _prepare(stack)
    assert code != 0
    assert str(home) in said
    assert "user 0 " in said
    assert "user 1000" in said
    assert list(home.iterdir()) == []
    commands = [line.strip() for line in said.splitlines() if line.strip().startswith("sudo ")]
    assert len(commands) == 1
    subprocess.run(shlex.split(commands[0])[1:], check=True)
    code, said = _prepare(stack)
    assert code == 0, said


@pytest.mark.spec("FLD-045")
def test_a_read_only_folder_stops_the_start(stack: Stack, tmp_path: Path) -> None:
    stack.environ["CREW_WORKSPACES"] = str(tmp_path)
    override = tmp_path / "read-only.yaml"
    override.write_text(
        f'services: {{prepare: {{volumes: ["{tmp_path}:/workspaces:ro"]}}}}\n', encoding="utf-8"
    )
    stack.files = (*stack.files, override)
    code, said = _prepare(stack)
    assert code != 0
    assert "/workspaces" in said
    assert "read-only" in said


@pytest.mark.spec("FLD-048")
def test_a_database_of_another_major_stops_the_start_untouched(stack: Stack) -> None:
    volume = f"{stack.project}_database"
    run = ("run", "--rm", "--user", "0:0", "--network", "none", "--entrypoint", "sh", "-v", f"{volume}:/v")
    docker(*run, "my-agent-crew/cli:local", "-c", "mkdir /v/data && echo 17 >/v/data/PG_VERSION")
    look = (*run, "my-agent-crew/cli:local", "-c", "find /v -printf '%p %U %m %T@ %s\\n'")
    before = docker(*look).stdout
    code, said = _prepare(stack)
    assert code != 0
    assert "PostgreSQL 17" in said
    assert " backup " in said
    assert " restore " in said
    assert docker(*look).stdout == before
    up = stack.compose("up", "-d", "--no-build", check=False)
    assert up.returncode != 0
    assert stack.container("postgres") == "" or stack.health("postgres") != "healthy"
    assert docker(*look).stdout == before


def test_lost_secrets_are_made_again_and_the_database_takes_the_new_passwords(stack: Stack) -> None:
    # A password that the cluster does not know is what a lost secrets volume amounts to.
    stack.compose("up", "-d", "--no-build", "postgres")
    _opens(stack, "crew_owner", "cli")
    _opens(stack, "crew_app", "orchestrator")
    stack.down()
    for service in ("cli", "orchestrator", "postgres"):
        docker("volume", "rm", f"{stack.project}_secrets-{service}")
    stack.compose("up", "-d", "--no-build", "postgres")
    _opens(stack, "crew_owner", "cli")
    _opens(stack, "crew_app", "orchestrator")


def _opens(stack: Stack, role: str, secrets: str) -> None:
    """Open the database as the service does, waiting until it answers."""
    program = (
        "import psycopg, sys, time\n"
        "for _ in range(120):\n"
        "    try:\n"
        f"        c = psycopg.connect('postgresql://{role}@postgres/crew?passfile=/secrets/database.pgpass')\n"
        "    except psycopg.OperationalError as e:\n"
        "        if 'authentication' in str(e): raise\n"
        "        time.sleep(0.5)\n"
        "    else:\n"
        "        print(c.execute('select current_user').fetchone()[0]); break\n"
    )
    done = docker(
        "run", "--rm", "--user", "1000:1000", "--network", f"{stack.project}_database",
        "-v", f"{stack.project}_secrets-{secrets}:/secrets:ro", "--entrypoint", "python",
        "my-agent-crew/cli:local", "-c", program,
    )  # fmt: skip
    assert done.stdout.strip() == role
