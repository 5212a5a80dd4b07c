"""Prepares the volumes of a container deployment, then ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from services.cli.postgres.binaries import MAJOR
from services.cli.prepare.database import check_major
from services.cli.prepare.mounts import mount_at
from services.cli.prepare.rights import Identity, Place, settle
from services.cli.prepare.secrets import make_secrets
from services.cli.texts import complain, language, say, texts
from services.common.start import StartError

# Postgres keeps the user of its image: initdb fails for one without an entry in passwd.
_POSTGRES = Identity(999, 999)
_POSTGRES_FOLDER = Path("/var/lib/postgresql")
_SECRETS = Path("/secrets")
# Each has a volume of secrets that nobody else mounts.
_SERVICES = ("gateway", "orchestrator", "tools", "script_sandbox", "cli")


def prepare(environ: Mapping[str, str], mounts: str) -> None:
    """Check everything, then change something: a refused start leaves the volumes as they were.

    Raises:
        StartError: A folder cannot be written, the database volume has another major version, or
            the services would run as root.
    """
    crew = Identity(_id(environ, "CREW_UID"), _id(environ, "CREW_GID"))
    check_major(_POSTGRES_FOLDER / "data", str(MAJOR))
    places = (
        Place(Path("/crew/home"), crew, 0o700, _host_path(environ, "CREW_HOME")),
        Place(Path("/workspaces"), crew, 0o2775, _host_path(environ, "CREW_WORKSPACES")),
        Place(Path("/crew/tools-state"), crew, 0o700),
        Place(_POSTGRES_FOLDER, _POSTGRES, 0o700),
    )
    for place in places:
        settle(place, mount_at(place.path, mounts))
    make_secrets(
        _SECRETS,
        dict.fromkeys(_SERVICES, crew) | {"postgres": _POSTGRES},
    )


def _id(environ: Mapping[str, str], name: str) -> int:
    text = environ.get(name, "") or "1000"
    if not text.isdecimal() or not 0 < int(text) < 2**32 - 1:
        raise StartError("error.prepare.identity", catalogue=texts(), variable=name, value=text)
    return int(text)


def _host_path(environ: Mapping[str, str], name: str) -> str:
    """Only an absolute path means the same to compose and to a person's shell."""
    path = environ.get(name, "")
    return path if path.startswith("/") else ""


def main() -> int:
    """Prepare; the exit code is 0 or 1, and 1 has told why in one sentence."""
    try:
        prepare(os.environ, Path("/proc/self/mountinfo").read_text("utf-8", errors="surrogateescape"))
    except StartError as error:
        complain(error.text(language()))
        return 1
    say("prepare.done")
    return 0


if __name__ == "__main__":
    sys.exit(main())
