"""``crew version``."""

from __future__ import annotations

import argparse
from importlib.metadata import version

from services.orchestrator.store.migrate import known


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None."""


def run(arguments: argparse.Namespace) -> int:
    """Print the version and the schema it brings."""
    migrations = known()
    print(f"my-agent-crew {version('my-agent-crew')} (schema {migrations[-1].n if migrations else 0})")
    return 0
