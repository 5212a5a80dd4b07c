"""``crew compose``: the container deployment, with the settings that compose cannot find out by itself."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from services.cli.texts import language, say, texts
from services.common.start import StartError

DEPLOY = Path(__file__).parents[3] / "deploy"
# Services never run as root; the images' own user takes its place.
_ORDINARY = 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Everything goes to compose as it is."""
    words = texts().text(language(), "cli.compose.arguments")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=words)


def run(arguments: argparse.Namespace) -> int:
    """Write ``deploy/.env`` when it lacks the ids (FLD-045), then become compose.

    Raises:
        StartError: This is not a clone of the repository, or there is no compose program.
    """
    if not (DEPLOY / "compose.yaml").exists():
        raise StartError("error.compose.no_clone", catalogue=texts())
    command = _program()
    if write_ids(DEPLOY / ".env", os.environ):
        say("cli.compose.wrote", file=DEPLOY / ".env")
    # Compose 1 looks for the profile from where it is started, compose 2 from the file's folder.
    environ = {"CREW_SECCOMP": str(DEPLOY / "seccomp" / "tools.json"), **os.environ}
    if len(command) == 1:
        # Compose 1 hands the wish for an unmasked /proc to the engine, which knows it by no name.
        environ.setdefault("CREW_PROC", "label=disable")
    os.execvpe(command[0], [*command, "-f", str(DEPLOY / "compose.yaml"), *arguments.arguments], environ)


def write_ids(file: Path, environ: Mapping[str, str]) -> bool:
    """Add the caller's ids to the settings of the deployment unless it has ids already.

    Args:
        file: Made readable by the caller alone, since keys may be put into it.
        environ: Tells who called through sudo.

    Returns:
        Whether something was written.
    """
    text = file.read_text("utf-8") if file.exists() else ""
    lines = [
        f"{name}={number}"
        for name, number in zip(("CREW_UID", "CREW_GID"), caller(environ), strict=True)
        if not re.search(rf"^\s*{name}\s*=", text, re.MULTILINE)
    ]
    if not lines:
        return False
    if text and not text.endswith("\n"):
        text += "\n"
    fresh = file.with_name(f"{file.name}.new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as written:
        written.write(text + "\n".join(lines) + "\n")
    if file.exists():
        shutil.copystat(file, fresh)
    os.replace(fresh, file)
    return True


def caller(environ: Mapping[str, str]) -> tuple[int, int]:
    """User and group of whoever asked: behind sudo the person, never root."""
    uid, gid = os.getuid(), os.getgid()
    if uid == 0:
        uid, gid = int(environ.get("SUDO_UID") or 0), int(environ.get("SUDO_GID") or 0)
    return uid or _ORDINARY, gid or _ORDINARY


def _program() -> list[str]:
    docker = shutil.which("docker")
    if docker and subprocess.run([docker, "compose", "version"], capture_output=True).returncode == 0:
        return [docker, "compose"]
    compose = shutil.which("docker-compose")
    if compose is None:
        raise StartError("error.compose.no_program", catalogue=texts())
    return [compose]
