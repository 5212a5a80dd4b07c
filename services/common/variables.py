"""Environment variables and ``<home>/env``, the file of the owner's keys."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from services.common.start import StartError

_MAX_BYTES = 256 * 1024
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Variables(Mapping[str, str]):
    """Variables by name. Values may be secrets, so it never shows them in its representation."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = dict(values)

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<Variables: {len(self)} names>"

    def present(self, name: str) -> bool:
        """Whether the variable is set to something (AGT-013: the most an API may say)."""
        return bool(self._values.get(name, "").strip())


def read_env_file(path: Path) -> Variables:
    """Read ``KEY=value`` lines as ``source`` would: quotes, comments and ``export`` are understood.

    A file that does not exist is empty.

    Raises:
        StartError: The file cannot be read, or a line is not an assignment; it names the line's
            number and never its text.
    """
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise StartError("error.settings.file_too_large", file=path, limit=_MAX_BYTES)
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return Variables({})
    except UnicodeDecodeError:
        raise StartError("error.settings.file_not_text", file=path) from None
    except OSError as error:
        raise StartError("error.settings.file_unreadable", file=path, problem=error.strerror) from None
    values: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            raise StartError("error.settings.env_line", file=path, line=number) from None
        if words[:1] == ["export"]:
            words = words[1:]
        if not words:
            continue
        name, equals, value = words[0].partition("=")
        if len(words) != 1 or not equals or not _NAME.fullmatch(name):
            raise StartError("error.settings.env_line", file=path, line=number)
        values[name] = value
    return Variables(values)


def home_of(environ: Mapping[str, str]) -> Path:
    """The home folder, ``~`` expanded and made absolute (AGT-001)."""
    return Path(os.path.abspath(Path(environ.get("MY_AGENT_HOME") or "~/.my-agent-crew").expanduser()))
