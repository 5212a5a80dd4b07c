"""What an archive says about itself, and which parts of a home go into it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import PurePosixPath

import orjson

from services.cli.texts import texts
from services.common.start import StartError

FORMAT = 1
MANIFEST = "manifest.json"
DATABASE = "database.dump"
HOME = "home"
MAX_MANIFEST_BYTES = 64 * 1024

# Made anew, or of this machine alone: the cluster's files (the dump holds what is in them), logs,
# older dumps, what tells of calls of a running process, and the marks of processes.
_NEVER = frozenset({"postgres", ".postgres.new", "logs", "backups", "state", ".lock", ".restoring"})
_SECRET = frozenset({"env", "secrets"})
# Passwords of a cluster that the archive does not hold.
_OF_THE_CLUSTER = PurePosixPath("secrets/postgres")


@dataclass(frozen=True, slots=True)
class Manifest:
    """Where an archive comes from."""

    program: str
    schema: int
    made_at: str
    secrets: bool
    format: int = FORMAT

    def encode(self) -> bytes:
        """As JSON."""
        return orjson.dumps(asdict(self), option=orjson.OPT_INDENT_2)

    @classmethod
    def decode(cls, data: bytes) -> Manifest:
        """Read a manifest.

        Raises:
            StartError: It is none, or of a later format than this program knows.
        """
        try:
            fields = orjson.loads(data)
            found = cls(
                program=str(fields["program"]),
                schema=int(fields["schema"]),
                made_at=str(fields["made_at"]),
                secrets=bool(fields["secrets"]),
                format=int(fields["format"]),
            )
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
            raise StartError("error.archive.not_one", catalogue=texts()) from None
        if found.format > FORMAT:
            raise StartError("error.archive.too_new", catalogue=texts(), program=found.program)
        return found


def belongs(path: PurePosixPath, *, secrets: bool) -> bool:
    """Whether a path of the home goes into an archive.

    Args:
        path: Relative to the home.
        secrets: Whether keys and tokens were asked for.
    """
    top = path.parts[0]
    if top in _NEVER or path == _OF_THE_CLUSTER or _OF_THE_CLUSTER in path.parents:
        return False
    return secrets or top not in _SECRET


def in_home(path: PurePosixPath) -> PurePosixPath:
    """Where a path below ``workspaces_dir`` is in a home that keeps its workspaces itself.

    An archive always has the home's own form, so that it fits any deployment.
    """
    agent, *rest = path.parts
    root = PurePosixPath("workspace") if agent == "default" else PurePosixPath("agents", agent, "workspace")
    return root.joinpath(*rest)
