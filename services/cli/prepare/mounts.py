"""Mount points as the kernel tells them, to know a fresh volume from a folder of the owner's."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

# How the engine keeps named volumes, wherever its data folder is.
_NAMED_VOLUME = re.compile(r"/volumes/[^/]+/_data$")
_ESCAPE = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mount:
    """One mount of this container."""

    # Where it comes from, within the host's file system that holds it.
    source: str
    read_only: bool

    @property
    def named_volume(self) -> bool:
        """Whether the engine made it, so that nobody else has files there."""
        return _NAMED_VOLUME.search(self.source) is not None


def mount_at(path: Path, table: str) -> Mount | None:
    """The mount whose mount point is `path`; None when the folder is the image's own.

    Args:
        path: Absolute path of the mount point.
        table: Text of ``/proc/self/mountinfo``; of mounts on one point the last is in force.
    """
    found = None
    for line in table.splitlines():
        fields = line.split(" ")
        if len(fields) > 5 and _plain(fields[4]) == str(path):
            found = Mount(source=_plain(fields[3]), read_only="ro" in fields[5].split(","))
    return found


def _plain(text: str) -> str:
    """The kernel writes blanks, tabs, line ends and backslashes of names as three octal digits."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 8)), text)
