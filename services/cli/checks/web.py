"""The checks of the web page's sources: types, style, unit tests, and whether the bundle is of them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from services.cli.texts import language, texts

# Each is a script of package.json.
_SCRIPTS = ("check", "test", "check:bundle")


def web(root: Path) -> bool | str:
    """Run them; returns why they were left out where Node is absent."""
    npm = shutil.which("npm")
    if npm is None:
        return texts().text(language(), "cli.test.no_node")
    sources = root / "services" / "gateway" / "web"
    contract = [sys.executable, "scripts/contract_types.py", "--check"]
    install = [npm, "ci", "--no-audit", "--no-fund", "--loglevel=error"]
    commands = [install, contract, *([npm, "run", "--silent", script] for script in _SCRIPTS)]
    return all(subprocess.run(command, cwd=sources, check=False).returncode == 0 for command in commands)
