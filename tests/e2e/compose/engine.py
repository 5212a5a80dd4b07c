"""The Docker engine and the compose program, driven as a person would from a shell."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
COMPOSE_FILE = ROOT / "deploy" / "compose.yaml"
PROFILE = ROOT / "deploy" / "seccomp" / "tools.json"
UP_SECONDS = 240


def docker(
    *arguments: str, check: bool = True, timeout: float = 120, **more: Any
) -> subprocess.CompletedProcess[str]:
    """Run the docker client; with `check` a failure raises with what it said."""
    client = os.environ.get("CREW_DOCKER", "docker")
    return _run([client, *arguments], check=check, timeout=timeout, **more)


@cache
def compose_command() -> list[str]:
    """``docker compose`` where the plug-in is installed, else ``docker-compose``; empty when neither is."""
    client = os.environ.get("CREW_DOCKER", "docker")
    if shutil.which(client) and _run([client, "compose", "version"], check=False).returncode == 0:
        return [client, "compose"]
    return ["docker-compose"] if shutil.which("docker-compose") else []


def resolve(*files: Path, environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The files merged and filled in by the compose program, all profiles included."""
    from ruamel.yaml import YAML

    arguments = [part for file in files for part in ("-f", str(file))]
    done = _run(
        [*compose_command(), *arguments, "--profile", "cli", "config"],
        check=True,
        env={**_environment(), **(environ or {})},
    )
    document: dict[str, Any] = YAML(typ="safe", pure=True).load(done.stdout)
    return document


def free_port() -> int:
    """A port of the loopback address that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until(what: Callable[[], bool], seconds: float, told: Callable[[], str] = str) -> None:
    """Poll until `what` holds.

    Raises:
        AssertionError: It did not within `seconds`; with what `told` says then.
    """
    deadline = time.monotonic() + seconds
    while not what():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:.0f} s: {told()}")
        time.sleep(0.25)


@dataclass
class Stack:
    """One deployment under a project name of its own, beside others on the same engine."""

    project: str
    environ: dict[str, str] = field(default_factory=dict)
    files: Sequence[Path] = (COMPOSE_FILE,)
    port: int = field(default_factory=free_port)
    grpc_port: int = field(default_factory=free_port)

    @property
    def url(self) -> str:
        """Where the gateway is published."""
        return f"http://127.0.0.1:{self.port}"

    def compose(
        self, *arguments: str, check: bool = True, timeout: float = UP_SECONDS, **more: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run the compose program on this deployment."""
        files = [part for file in self.files for part in ("-f", str(file))]
        environ = {
            **_environment(),
            "CREW_PORT": str(self.port),
            "CREW_GRPC_PORT": str(self.grpc_port),
            **self.environ,
        }
        command = [*compose_command(), "-p", self.project, *files, *arguments]
        return _run(command, check=check, timeout=timeout, env=environ, **more)

    def up(self) -> None:
        """Start everything from the images that are there, and wait until it is healthy."""
        self.compose("up", "-d", "--no-build")
        wait_until(
            lambda: all(self.health(name) == "healthy" for name in SERVING),
            UP_SECONDS,
            lambda: f"{ {name: self.health(name) for name in SERVING} }\n{self.logs()[-6000:]}",
        )

    def down(self, *, volumes: bool = False) -> None:
        """Remove the containers and networks, with `volumes` everything that was kept too."""
        self.compose("down", "--timeout", "20", *(["--volumes"] if volumes else []))

    def container(self, service: str) -> str:
        """The id of the service's container; empty when it has none."""
        labels = {"project": self.project, "service": service, "oneoff": "False"}
        filters = [f"--filter=label=com.docker.compose.{name}={value}" for name, value in labels.items()]
        return docker("ps", "--all", "--quiet", "--no-trunc", *filters).stdout.strip()

    def inspect(self, service: str) -> dict[str, Any]:
        """All the engine knows of the service's container."""
        found: list[dict[str, Any]] = json.loads(docker("inspect", self.container(service)).stdout)
        return found[0]

    def health(self, service: str) -> str:
        """``healthy``, ``starting``, ``unhealthy`` or the state of a container without a check."""
        container = self.container(service)
        if not container:
            return "absent"
        template = "{{if .State.Health}}{{.State.Health.Status}}{{else}}{{.State.Status}}{{end}}"
        return docker("inspect", "--format", template, container, check=False).stdout.strip()

    def inside(self, service: str, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command in the service's container, as its user."""
        return docker("exec", self.container(service), *command, check=check)

    def logs(self, *services: str) -> str:
        """Everything the services wrote, standard error included."""
        done = self.compose("logs", "--no-color", *services, check=False)
        return done.stdout + done.stderr


def _environment() -> dict[str, str]:
    """What `crew compose` sets besides what is there."""
    environ = {**os.environ, "CREW_SECCOMP": str(PROFILE)}
    if len(compose_command()) == 1:
        environ["CREW_PROC"] = "label=disable"
    return environ


SERVING = ("postgres", "orchestrator", "tools", "script_sandbox", "gateway")


def _run(
    command: Sequence[str], *, check: bool, timeout: float = 60, **more: Any
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, **more)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done
