"""``crew restore``: an empty home becomes that of a backup."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from services.cli.archive.reading import check_empty, fill, finish, opened, unpack
from services.cli.home import Layout, check_disk, check_writable, locked
from services.cli.postgres.access import await_database
from services.cli.postgres.running import running
from services.cli.texts import language, say, texts
from services.orchestrator.store.migrate import SchemaChange


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The file."""
    parser.add_argument("file", type=Path, help=texts().text(language(), "cli.restore.file"))


def run(arguments: argparse.Namespace) -> int:
    """Unpack, fill the database, migrate; the home is whole or marked as unfinished.

    Raises:
        StartError: The home is not empty, the archive is none, or a step failed.
    """
    layout = Layout.from_environment(os.environ)
    check_writable(layout.home)
    check_disk(layout.home)
    with locked(layout), opened(arguments.file) as (archive, manifest):
        check_empty(layout.home, layout.workspaces)
        dumped = unpack(archive, layout.home)
        change = _fill(layout, dumped)
        finish(layout.home, layout.workspaces)
    say("cli.restore.done", home=layout.home, program=manifest.program, made_at=manifest.made_at)
    if change.after != manifest.schema:
        say("cli.restore.migrated", before=manifest.schema, after=change.after)
    if not manifest.secrets:
        say("cli.restore.without_secrets", env=layout.env)
    return 0


def _fill(layout: Layout, dumped: Path) -> SchemaChange:
    given = os.environ.get("MY_AGENT_MIGRATION_DATABASE_URL", "").strip()
    if given:
        await_database(given)
        return fill(given, dumped)
    # In the staging folder with the rest: what a killed restore leaves is thrown away as a whole.
    layout.prepare_run()
    cluster = layout.cluster_in(dumped.parent / "home")
    cluster.initialise()
    with running(cluster):
        cluster.provision()
        return fill(cluster.url("crew_owner"), dumped)
