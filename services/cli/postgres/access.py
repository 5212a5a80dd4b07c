"""The database that the command line works on: a home's own, or one that a deployment names."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import psycopg

from services.cli.home import Layout, locked
from services.cli.postgres.running import answers, running
from services.cli.texts import texts
from services.common.start import StartError

# A database container may still be starting, or recovering.
WAIT_SECONDS = 60.0


@contextmanager
def owner_url(layout: Layout, environ: Mapping[str, str]) -> Iterator[str]:
    """The connection string of the schema's owner, to a database that answers.

    It is ``MY_AGENT_MIGRATION_DATABASE_URL`` when that is set. Else it is the home's own database:
    as it is when a crew is running there, started for this block when not.

    Raises:
        StartError: The database does not answer.
    """
    given = environ.get("MY_AGENT_MIGRATION_DATABASE_URL", "").strip()
    if given:
        await_database(given)
        yield given
        return
    cluster = layout.cluster
    cluster.check_version()
    if not cluster.exists:
        raise StartError("error.home.no_database", catalogue=texts(), home=layout.home)
    if answers(cluster):
        yield cluster.url("crew_owner")
        return
    layout.prepare_run()
    with locked(layout), running(cluster):
        cluster.provision()
        yield cluster.url("crew_owner")


def await_database(url: str, seconds: float = WAIT_SECONDS) -> None:
    """Wait until the database takes connections.

    Raises:
        StartError: It did not within `seconds`, or it refuses this role.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            psycopg.connect(url, connect_timeout=5).close()
        except psycopg.OperationalError as error:
            if time.monotonic() > deadline:
                problem = (str(error).strip().splitlines() or ["?"])[-1][:300]
                raise StartError("error.postgres.unusable", catalogue=texts(), problem=problem) from None
            time.sleep(0.5)
        else:
            return
