"""Matches lines of files by a pattern of Python's ``re``. A program of its own, on the standard library.

Usage: matcher.py PATTERN MAX_PER_FILE MAX_BYTES FILE...; writes ``FILE NUL line:text``.
"""

from __future__ import annotations

import re
import resource
import sys

_MEMORY_BYTES = 1024**3
_CPU_SECONDS = 60


def main(pattern: str, per_file: int, width: int, names: list[str]) -> None:
    """Search the named files in order."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))
    search = re.compile(pattern).search
    out = sys.stdout.buffer
    for name in names:
        found = 0
        with open(name, "rb") as file:
            for number, raw in enumerate(file, 1):
                line = raw.removesuffix(b"\n").removesuffix(b"\r")
                if number == 1:
                    line = line.removeprefix(b"\xef\xbb\xbf")
                if search(line.decode("utf-8", "surrogateescape")):
                    out.write(b"%s\0%d:%s\n" % (name.encode(), number, line[:width]))
                    out.flush()
                    found += 1
                    if found >= per_file:
                        break


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
