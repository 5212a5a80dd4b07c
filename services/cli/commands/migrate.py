"""``crew migrate``: the schema is brought up to date before any service starts (FLD-046)."""

from __future__ import annotations

import argparse
import os

from services.cli.home import Layout
from services.cli.postgres.access import owner_url
from services.cli.postgres.dumps import dump_before
from services.cli.texts import say
from services.common.settings import load_config, read_env_file
from services.orchestrator.store.migrate import migrate


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None: the database is the home's, or that of ``MY_AGENT_MIGRATION_DATABASE_URL``."""


def run(arguments: argparse.Namespace) -> int:
    """Apply what is missing, after a dump into the home's ``backups``.

    Raises:
        StartError: The database does not answer, is newer than this program, a file failed, or the
            settings are not allowed.
    """
    layout = Layout.from_environment(os.environ)
    config = load_config(layout.config, {**read_env_file(layout.env), **os.environ})
    with owner_url(layout, os.environ) as url:
        change = migrate(
            url,
            before_change=lambda change: dump_before(change, url, layout.backups),
            audit_months=config.values.audit_months,
        )
    if change.before == change.after:
        say("cli.migrate.current", schema=change.after)
    else:
        say("cli.migrate.done", before=change.before, after=change.after)
    return 0
