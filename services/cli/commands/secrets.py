"""``crew secrets``: the tokens by which the services know each other."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from services.cli.home import Layout
from services.cli.texts import language, say, texts
from services.common.rpc.tokens import issue_all


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The folder with one folder a service."""
    parser.add_argument("folder", type=Path, nargs="?", help=texts().text(language(), "cli.secrets.folder"))


def run(arguments: argparse.Namespace) -> int:
    """Make what is missing; a token that is there stays."""
    folder = arguments.folder or Layout.from_environment(os.environ).home / "secrets"
    say("cli.secrets.done", made=issue_all(folder), folder=folder)
    return 0
