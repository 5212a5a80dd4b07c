"""A workspace in a dictionary: stands behind every interface of the workspace tools in tests."""

from __future__ import annotations

import asyncio
import hashlib
import posixpath
import re
from collections.abc import Callable, Iterator

from services.common.toolhost.contract import WorkspaceGrant
from services.tools.workspace.faults import WorkspaceFault
from services.tools.workspace.glob_pattern import GlobPattern
from services.tools.workspace.interfaces import (
    ABSENT,
    ByteSink,
    ContentQuery,
    DirectoryPage,
    Entry,
    FileIdentity,
    FoundFiles,
    Hit,
    Hits,
    SearchEnd,
    Target,
    Written,
)
from services.tools.workspace.paths import check_writable, is_below, is_below_any, relative_path

SKIPPED = {".git", ".venv", "node_modules", "__pycache__", "dist", "build"}
SHOWN = 300


class MemoryWorkspace:
    """Files, folders, links and special files by absolute path."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.folders: set[str] = set()
        self.links: dict[str, str] = {}
        self.specials: set[str] = set()
        self._lock = asyncio.Lock()

    def _exists(self, path: str) -> bool:
        return path in self.files or path in self.folders or path in self.specials

    def _resolved(self, path: str, shown: str) -> str:
        names, real, hops = path.strip("/").split("/"), "/", 0
        while names:
            name = names.pop(0)
            if name == "..":
                real = posixpath.dirname(real)
                continue
            here = posixpath.join(real, name)
            if here in self.links:
                hops += 1
                if hops > 40:
                    raise WorkspaceFault("link_loop", shown)
                target = self.links[here]
                names = [part for part in target.split("/") if part] + names
                real = "/" if target.startswith("/") else real
                continue
            real = here
        return real

    def _place(self, grant: WorkspaceGrant, path: str, *, writing: bool = False) -> str:
        asked = relative_path(grant, path)
        real = self._resolved(posixpath.join(grant.root, asked), path)
        if not is_below(real, grant.root):
            raise WorkspaceFault("outside", path)
        if is_below_any(real, grant.private_paths):
            raise WorkspaceFault("private", path)
        relative = real[len(grant.root) :].lstrip("/")
        if writing:
            check_writable(grant, path, asked, relative)
            if not relative or path.endswith("/"):
                raise WorkspaceFault("is_directory", path)
        return real

    def _file(self, real: str, shown: str) -> bytes:
        if real in self.folders:
            raise WorkspaceFault("is_directory", shown)
        if real in self.specials:
            raise WorkspaceFault("special", shown)
        if real not in self.files:
            above = posixpath.dirname(real)
            while above != "/":
                if above in self.files:
                    raise WorkspaceFault("not_directory", shown)
                above = posixpath.dirname(above)
            raise WorkspaceFault("missing", shown)
        return self.files[real]

    async def page(self, grant: WorkspaceGrant, path: str, *, offset: int, count: int) -> DirectoryPage:
        real = self._place(grant, path)
        if real not in self.folders:
            if real == grant.root:
                return DirectoryPage("", (), 0)
            kind = "not_directory" if self._exists(real) else "missing"
            raise WorkspaceFault(kind, path)
        everything = {*self.files, *self.folders, *self.links, *self.specials}
        names = sorted(posixpath.basename(p) for p in everything if posixpath.dirname(p) == real)
        entries = [self._entry(posixpath.join(real, name), name) for name in names]
        relative = real[len(grant.root) :].lstrip("/")
        return DirectoryPage(relative, entries[offset : offset + count], len(entries))

    def _entry(self, path: str, name: str) -> Entry:
        if path in self.links:
            return Entry(name, "link")
        if path in self.folders:
            return Entry(name, "directory")
        if path in self.files:
            return Entry(name, "file", len(self.files[path]))
        return Entry(name, "special")

    async def read(self, grant: WorkspaceGrant, path: str, sink: ByteSink) -> FileIdentity:
        real = self._place(grant, path)
        content = self._file(real, path)
        relative = real[len(grant.root) :].lstrip("/")
        for start in range(0, len(content), 5):
            if not sink.feed(content[start : start + 5]):
                return FileIdentity(relative, len(content), whole=False)
        return FileIdentity(relative, len(content), whole=True)

    async def look(self, grant: WorkspaceGrant, path: str) -> Target:
        real = self._place(grant, path, writing=True)
        relative = real[len(grant.root) :].lstrip("/")
        try:
            content = self._file(real, path)
        except WorkspaceFault as fault:
            if fault.kind != "missing":
                raise
            return Target(relative, ABSENT)
        return Target(relative, hashlib.sha256(content).hexdigest(), content)

    async def change(
        self, grant: WorkspaceGrant, path: str, make: Callable[[Target], bytes | None]
    ) -> Written | None:
        async with self._lock:
            before = await self.look(grant, path)
            content = make(before)
            if content is None:
                return None
            real = posixpath.join(grant.root, before.path)
            self.files[real] = content
            above = posixpath.dirname(real)
            while is_below(above, grant.root):
                self.folders.add(above)
                above = posixpath.dirname(above)
            return Written(before, content)

    def _walk(self, grant: WorkspaceGrant, start: str) -> Iterator[tuple[str, str]]:
        for real in sorted({*self.files, *self.links}):
            if not is_below(real, start) or is_below_any(real, grant.private_paths):
                continue
            below = real[len(start) :].lstrip("/").split("/")
            if not SKIPPED.intersection(below[:-1]):
                yield real[len(grant.root) :].lstrip("/"), real

    async def find(
        self, grant: WorkspaceGrant, wanted: GlobPattern, *, offset: int, count: int, seconds: float
    ) -> FoundFiles:
        start = self._place(grant, wanted.fixed_prefix or ".")
        found = []
        for relative, real in self._walk(grant, start):
            if not wanted.matches(relative):
                continue
            if real in self.links:
                try:
                    self._file(self._place(grant, relative), relative)
                except WorkspaceFault:
                    continue
            found.append(relative)
        return FoundFiles(found[offset : offset + count], SearchEnd(more=len(found) > offset + count))

    async def search(self, grant: WorkspaceGrant, query: ContentQuery) -> Hits:
        start = self._place(grant, query.start)
        if start != grant.root and start not in self.folders:
            self._file(start, query.start)
        hits = []
        for relative, real in self._walk(grant, start):
            if real in self.links or (query.wanted and not query.wanted.matches(relative)):
                continue
            content = self.files[real].removeprefix(b"\xef\xbb\xbf")
            if b"\0" in content[:8192]:
                continue
            lines = content.split(b"\n")
            if not lines[-1]:
                lines.pop()
            for number, raw in enumerate(lines, 1):
                line = raw.removesuffix(b"\r").decode("utf-8", "surrogateescape")
                if re.search(query.pattern, line):
                    plain = raw.removesuffix(b"\r").decode("utf-8", "replace")
                    text = plain if len(plain) <= SHOWN else f"{plain[: SHOWN - 1]}…"
                    hits.append(Hit(relative, number, text))
        wanted = query.offset + query.count
        return Hits(hits[query.offset : wanted], SearchEnd(more=len(hits) > wanted))
