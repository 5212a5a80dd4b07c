"""``crew test``: every check of the project, one after the other, with what is left out and why."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from services.cli.checks.protocol import breaking, lint
from services.cli.checks.web import web
from services.cli.texts import complain, language, say, texts
from services.common.start import StartError

ROOT = Path(__file__).parents[3]
# Pytest's way to say that it found no test.
_NO_TESTS = 5


@dataclass(frozen=True, slots=True)
class Check:
    """One check.

    Attributes:
        name: By which it can be chosen.
        run: Returns whether it passed, or the reason why it was left out.
    """

    name: str
    run: Callable[[], bool | str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which checks, and what pytest gets beyond."""
    words = texts()
    names = [check.name for check in _checks(())]
    parser.add_argument("only", nargs="*", metavar="check", help=", ".join(names))
    parser.add_argument("--pytest", default="", help=words.text(language(), "cli.test.pytest"))


def run(arguments: argparse.Namespace) -> int:
    """Run the checks; returns 1 when one failed.

    Raises:
        StartError: This is not a clone of the repository.
    """
    if not (ROOT / "tests").is_dir():
        raise StartError("error.test.no_clone", catalogue=texts())
    checks = _checks(arguments.pytest.split())
    unknown = set(arguments.only) - {check.name for check in checks}
    if unknown:
        raise StartError("error.test.unknown", catalogue=texts(), name=", ".join(sorted(unknown)))
    failed: list[str] = []
    for check in checks:
        if arguments.only and check.name not in arguments.only:
            continue
        say("cli.test.begins", name=check.name)
        began = time.monotonic()
        outcome = check.run()
        seconds = round(time.monotonic() - began, 1)
        if isinstance(outcome, str):
            say("cli.test.skipped", name=check.name, reason=outcome)
        elif outcome:
            say("cli.test.passed", name=check.name, seconds=seconds)
        else:
            failed.append(check.name)
            complain(texts().text(language(), "cli.test.failed", name=check.name, seconds=seconds))
    if failed:
        complain(texts().text(language(), "cli.test.sum_failed", names=", ".join(failed)))
        return 1
    say("cli.test.sum_passed")
    return 0


def _checks(more: Sequence[str]) -> list[Check]:
    return [
        Check("lint", lambda: _tool("ruff", "check", ".")),
        Check("format", lambda: _tool("ruff", "format", "--check", ".")),
        Check("types", lambda: _tool("mypy")),
        Check("imports", lambda: _tool("lint-imports")),
        Check("protocol", lambda: lint(ROOT)),
        Check("compatibility", lambda: breaking(ROOT)),
        Check("unit", lambda: _pytest("tests/unit", more)),
        Check("contract", lambda: _pytest("tests/contract", more)),
        Check("integration", lambda: _pytest("tests/integration", more)),
        Check("web", lambda: web(ROOT)),
        Check("e2e", lambda: _pytest("tests/e2e", more)),
        Check("chaos", lambda: _pytest("tests/chaos", more)),
    ]


def _tool(name: str, *arguments: str) -> bool | str:
    program = Path(sys.executable).parent / name
    if not program.exists():
        return texts().text(language(), "cli.test.no_tool", name=name)
    return subprocess.run([str(program), *arguments], cwd=ROOT, check=False).returncode == 0


def _pytest(folder: str, more: Sequence[str]) -> bool | str:
    if not (ROOT / folder).is_dir():
        return texts().text(language(), "cli.test.no_folder", folder=folder)
    # Settings of the person who runs the tests are not those of the tests.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MY_AGENT_")}
    command = [sys.executable, "-m", "pytest", "-q", folder, *more]
    code = subprocess.run(command, cwd=ROOT, env=environ, check=False).returncode
    if code == _NO_TESTS:
        return texts().text(language(), "cli.test.no_folder", folder=folder)
    return code == 0
