"""What each workspace tool needs of the world outside, and no more (PIP-060).

A tool is given one of these interfaces and can do nothing else: reading cannot write, writing cannot
list. Whoever stands behind one (a disk, a test's dictionary, a remote machine) keeps the workspace's
walls by itself: it takes the path as the model wrote it and raises `WorkspaceFault` for what may
not be reached (PIP-127, PIP-138).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from services.common.toolhost.contract import WorkspaceGrant
from services.tools.workspace.glob_pattern import GlobPattern

EntryKind = Literal["file", "directory", "link", "special"]
# The state of a target that does not exist.
ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a directory. `size` is in bytes, of files."""

    name: str
    kind: EntryKind
    size: int = 0


@dataclass(frozen=True, slots=True)
class DirectoryPage:
    """Some entries of a directory, in order of name."""

    # Relative to the workspace; "" is the workspace itself.
    path: str
    entries: Sequence[Entry]
    total: int
    # Reading stopped at its time limit: `total` counts what was read.
    stopped: bool = False


class DirectoryListing(Protocol):
    """The names in one directory."""

    async def page(self, grant: WorkspaceGrant, path: str, *, offset: int, count: int) -> DirectoryPage:
        """Return at most `count` entries of the directory at `path`, leaving out the first `offset`.

        Raises:
            WorkspaceFault: The path is not a directory that may be listed.
        """


class ByteSink(Protocol):
    """Takes the bytes of a file as they come."""

    def feed(self, chunk: bytes) -> bool:
        """Take the next bytes; False when no more are wanted."""


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """Which file was read."""

    # Relative to the workspace, all links resolved.
    path: str
    size: int
    # Every byte was handed over.
    whole: bool


class FileReading(Protocol):
    """The bytes of one file."""

    async def read(self, grant: WorkspaceGrant, path: str, sink: ByteSink) -> FileIdentity:
        """Hand the bytes of the file at `path` to `sink`, in order, until it wants no more.

        Raises:
            WorkspaceFault: The path is not a file that may be read.
        """


@dataclass(frozen=True, slots=True)
class Target:
    """The file a change is about, as it is now."""

    # Relative to the workspace, all links resolved.
    path: str
    # SHA-256 of its bytes, `ABSENT`, or what stands for a file too large to be looked at whole.
    state: str
    # None: it does not exist, or is too large to be looked at.
    content: bytes | None = None

    @property
    def exists(self) -> bool:
        """Whether there is a file."""
        return self.state != ABSENT


@dataclass(frozen=True, slots=True)
class Written:
    """A change that was made."""

    before: Target
    content: bytes


class FileChanging(Protocol):
    """Reading and replacing one file as one step."""

    async def look(self, grant: WorkspaceGrant, path: str) -> Target:
        """The file at `path` as it is now, by the same rules as for `change`, without an effect.

        Raises:
            WorkspaceFault: The path is not a file that may be written.
        """

    async def change(
        self, grant: WorkspaceGrant, path: str, make: Callable[[Target], bytes | None]
    ) -> Written | None:
        """Replace the file at `path` by what `make` gives for it, whole or not at all.

        Changes of one file wait for each other, whoever makes them (PIP-035). What `make` raises
        goes through and nothing is written; None leaves the file as it is.

        Returns:
            What was changed, also when the caller was cancelled while it was being written: the
            write is then finished all the same (PIP-135). None if `make` gave None.

        Raises:
            WorkspaceFault: The path is not a file that may be written.
            asyncio.CancelledError: The caller was cancelled before the write began.
        """


@dataclass(frozen=True, slots=True)
class SearchEnd:
    """How a search through the tree ended."""

    # There are more results than were asked for.
    more: bool = False
    # It ran out of time.
    stopped: bool = False
    # Folders that were found and not looked into.
    folders_left: int = 0
    # Files over the size limit of a search, not looked into.
    files_too_large: int = 0


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """Paths relative to the workspace, in order."""

    paths: Sequence[str]
    end: SearchEnd


class FileFinding(Protocol):
    """The names of files below a directory."""

    async def find(
        self, grant: WorkspaceGrant, wanted: GlobPattern, *, offset: int, count: int, seconds: float
    ) -> FoundFiles:
        """Find the files whose path matches `wanted`, leaving out the first `offset`.

        Raises:
            WorkspaceFault: The pattern begins in a directory that may not be entered.
        """


@dataclass(frozen=True, slots=True)
class ContentQuery:
    """What to look for in the files below `start`."""

    # A regular expression of Python that compiles.
    pattern: str
    start: str
    # Limits the files; None takes all.
    wanted: GlobPattern | None
    offset: int
    count: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Hit:
    """One matching line."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Hits:
    """Matching lines by path, then line."""

    hits: Sequence[Hit]
    end: SearchEnd


class ContentSearch(Protocol):
    """The lines of files below a directory."""

    async def search(self, grant: WorkspaceGrant, query: ContentQuery) -> Hits:
        """Find the lines that match.

        Raises:
            WorkspaceFault: The start may not be entered.
        """
