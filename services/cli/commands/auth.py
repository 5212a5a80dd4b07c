"""``crew auth set-password``: the owner's password, typed twice and never shown (GTW-025)."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from services.cli.home import Layout
from services.cli.postgres.access import owner_url
from services.cli.texts import language, texts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to do."""
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("set-password", help=texts().text(language(), "cli.auth.set_password"))


def run(arguments: argparse.Namespace) -> int:
    """Let the orchestrator's own program ask for it; works whether the crew runs or not.

    Raises:
        StartError: There is no database.
    """
    with owner_url(Layout.from_environment(os.environ), os.environ) as url:
        return subprocess.run(
            [sys.executable, "-P", "-m", "services.orchestrator.access", arguments.action],
            env={**os.environ, "MY_AGENT_DATABASE_URL": url, "MY_AGENT_LANGUAGE": language()},
            check=False,
        ).returncode
