"""Log files of the services: bounded, the newest first in their names (FLD-052)."""

from __future__ import annotations

import os
from pathlib import Path

MAX_BYTES = 10 * 1024 * 1024
KEPT = 5


class RotatingFile:
    """Appends to a file and moves it aside when it is full.

    A full disk loses log lines, never the process that writes them.

    Args:
        path: The current file; older ones are ``<path>.1`` to ``<path>.4``.
    """

    def __init__(self, path: Path, *, max_bytes: int = MAX_BYTES, kept: int = KEPT) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._kept = kept
        self._descriptor: int | None = None
        self._size = 0

    def write(self, data: bytes) -> None:
        """Append `data`, after rotating when it would pass the limit."""
        try:
            if self._descriptor is None or self._size + len(data) > self._max_bytes:
                self._rotate_if_full(len(data))
            if self._descriptor is not None:
                self._size += os.write(self._descriptor, data)
        except OSError:
            self.close()

    def close(self) -> None:
        """Close the file; the next write opens it again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def tail(self, lines: int) -> list[str]:
        """The last lines of the current file."""
        try:
            with self._path.open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - 16_384))
                return file.read().decode(errors="replace").splitlines()[-lines:]
        except OSError:
            return []

    def _rotate_if_full(self, coming: int) -> None:
        self.close()
        try:
            self._size = self._path.stat().st_size
        except FileNotFoundError:
            self._size = 0
        if self._size and self._size + coming > self._max_bytes:
            for number in range(self._kept - 1, 0, -1):
                older = self._path if number == 1 else self._named(number - 1)
                if older.exists():
                    older.replace(self._named(number))
            self._size = 0
        self._descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def _named(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")
