"""``crew backup``: database and home in one file, while the crew runs or not."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from services.cli.archive.writing import write_archive
from services.cli.home import Layout
from services.cli.postgres.access import owner_url
from services.cli.texts import language, say, texts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The file, and whether keys go in."""
    parser.add_argument("file", type=Path, help=texts().text(language(), "cli.backup.file"))
    parser.add_argument("--secrets", action="store_true", help=texts().text(language(), "cli.backup.secrets"))


def run(arguments: argparse.Namespace) -> int:
    """Write the archive.

    Raises:
        StartError: There is no home or database, or the file cannot be written.
    """
    layout = Layout.from_environment(os.environ)
    path = Path(os.path.abspath(arguments.file))
    with owner_url(layout, os.environ) as url:
        manifest = write_archive(
            path, layout.home, url, workspaces=layout.workspaces, with_secrets=arguments.secrets
        )
    size = path.stat().st_size // 1024
    say("cli.backup.done", file=path, kilobytes=size, schema=manifest.schema)
    if not arguments.secrets:
        say("cli.backup.without_secrets")
    return 0
