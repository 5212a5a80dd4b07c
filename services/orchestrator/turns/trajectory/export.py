"""Making the file of a run (TRN-309 to 316)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from services.common.errors import TooLarge
from services.common.toolhost import exact_json
from services.common.wording import Locale, load
from services.orchestrator.store.pool import Database
from services.orchestrator.turns.trajectory.collecting import Collected, collect
from services.orchestrator.turns.trajectory.covering import Covering
from services.orchestrator.turns.trajectory.document import document
from services.orchestrator.turns.trajectory.markdown import markdown

Format = Literal["json", "md"]

# Of one file, below what a gRPC message may hold.
MOST_BYTES = 15 * 1024**2
_TYPES: dict[Format, str] = {
    "json": "application/json; charset=utf-8",
    "md": "text/markdown; charset=utf-8",
}


@dataclass(frozen=True, slots=True)
class Exported:
    """A file to hand out."""

    name: str
    content_type: str
    content: bytes


class TrajectoryExport:
    """Makes files of runs.

    Args:
        database: Holds runs.
        secrets: Values that must not leave with a file.
        locale: Of the words around what was said.
    """

    def __init__(self, database: Database, secrets: Iterable[str], locale: Locale) -> None:
        self._database = database
        self._covering = Covering(secrets, load("orchestrator").text(locale, "trajectory.redacted"))
        self._locale: Locale = locale

    async def export(self, run_id: str, form: Format, *, full: bool) -> Exported:
        """One run as a file.

        Raises:
            NotFound: No such run.
            TooLarge: The file would be over `MOST_BYTES`.
        """
        collected = await collect(self._database, run_id)
        # Patterns over megabytes: not on the event loop.
        content = await asyncio.to_thread(self._written, collected, form, full)
        if len(content) > MOST_BYTES:
            key = "error.trajectory_too_large_full" if full else "error.trajectory_too_large"
            raise TooLarge("TRAJECTORY_TOO_LARGE", key, limit=MOST_BYTES // 1024**2)
        return Exported(f"run-{run_id}.{form}", _TYPES[form], content)

    def _written(self, collected: Collected, form: Format, full: bool) -> bytes:
        tree = document(collected, self._covering, self._locale, full=full)
        text = exact_json.dumps(tree) if form == "json" else markdown(tree, self._locale)
        return text.encode()
