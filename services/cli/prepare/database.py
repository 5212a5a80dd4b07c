"""The database volume's major version (FLD-048)."""

from __future__ import annotations

from pathlib import Path

from services.cli.texts import texts
from services.common.start import StartError


def check_major(cluster: Path, expected: str) -> None:
    """Refuse a cluster that another major version of Postgres made; it is only read.

    Args:
        cluster: The data folder; one that does not exist or is empty passes.
        expected: The major version that the deployment pins.

    Raises:
        StartError: It is another one; the sentence has the commands that carry the data over.
    """
    try:
        found = (cluster / "PG_VERSION").read_text("ascii").strip()[:20]
    except FileNotFoundError:
        return
    if found != expected:
        raise StartError(
            "error.prepare.database_major",
            catalogue=texts(),
            path=cluster,
            found=found,
            expected=expected,
        )
