"""One workspace, on disk and in memory: every test of a tool runs on both (PIP-060)."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from services.common.toolhost.contract import (
    CallContext,
    Run,
    Tool,
    ToolError,
    ToolResult,
    Verdict,
    WorkspaceGrant,
    text_result,
)
from services.tools.workspace.checks.checking import SyntaxChecks
from services.tools.workspace.disk.path_queue import PathQueue
from services.tools.workspace.on_disk import workspace_tools
from services.tools.workspace.seen import SeenFiles
from services.tools.workspace.workspace_edit import WorkspaceEdit
from services.tools.workspace.workspace_glob import WorkspaceGlob
from services.tools.workspace.workspace_grep import WorkspaceGrep
from services.tools.workspace.workspace_list import WorkspaceList
from services.tools.workspace.workspace_read import WorkspaceRead
from services.tools.workspace.workspace_write import WorkspaceWrite
from tests.unit.tools.workspace.memory import MemoryWorkspace


async def no_progress(text: str, details: Any = None) -> None:
    """Nobody watches."""


@dataclass
class Bench:
    """The tools on one kind of workspace, and what a test needs to set it up and look at it."""

    root: str
    tools: dict[str, Tool]
    memory: MemoryWorkspace | None
    context: CallContext
    calls: int = 0

    def put(self, path: str, content: bytes | str = b"") -> None:
        data = content.encode() if isinstance(content, str) else content
        full = os.path.join(self.root, path)
        if self.memory is not None:
            self.memory.files[full] = data
            self._folders(full)
            return
        os.makedirs(os.path.dirname(full), exist_ok=True)
        Path(full).write_bytes(data)

    def folder(self, path: str) -> None:
        full = os.path.join(self.root, path)
        if self.memory is not None:
            self.memory.folders.add(full)
            self._folders(full)
            return
        os.makedirs(full, exist_ok=True)

    def link(self, path: str, target: str) -> None:
        full = os.path.join(self.root, path)
        if self.memory is not None:
            self.memory.links[full] = target
            self._folders(full)
            return
        os.makedirs(os.path.dirname(full), exist_ok=True)
        os.symlink(target, full)

    def fifo(self, path: str) -> None:
        full = os.path.join(self.root, path)
        if self.memory is not None:
            self.memory.specials.add(full)
            self._folders(full)
            return
        os.mkfifo(full)

    def _folders(self, full: str) -> None:
        assert self.memory is not None
        while (full := os.path.dirname(full)) != "/":
            self.memory.folders.add(full)

    def get(self, path: str) -> bytes:
        full = os.path.join(self.root, path)
        return self.memory.files[full] if self.memory is not None else Path(full).read_bytes()

    def exists(self, path: str) -> bool:
        full = os.path.join(self.root, path)
        if self.memory is not None:
            return full in {*self.memory.files, *self.memory.folders, *self.memory.links}
        return os.path.lexists(full)

    def grant(self, **fields: Any) -> WorkspaceGrant:
        return WorkspaceGrant(root=self.root, **fields)

    async def run(
        self, tool: str, arguments: dict[str, Any], *, target_state: str = "", **fields: Any
    ) -> ToolResult:
        self.calls += 1
        context = replace(self.context, call_id=f"k{self.calls}", **fields)
        prepared = self.tools[tool].prepare(arguments)
        try:
            return await self.tools[tool].run(Run(context, prepared, no_progress, target_state=target_state))
        except ToolError as error:
            return text_result(
                error.text,
                details=error.details,
                is_error=True,
                refused=error.refused,
                outcome=error.outcome,
            )

    async def judge(self, tool: str, arguments: dict[str, Any], **fields: Any) -> Verdict:
        context = replace(self.context, **fields)
        return await self.tools[tool].judge(context, self.tools[tool].prepare(arguments))


def memory_tools(memory: MemoryWorkspace, seen: SeenFiles) -> Sequence[Tool]:
    checks = SyntaxChecks()
    return (
        WorkspaceList(memory),
        WorkspaceRead(memory, seen),
        WorkspaceWrite(memory, seen, checks),
        WorkspaceEdit(memory, seen, checks),
        WorkspaceGrep(memory),
        WorkspaceGlob(memory),
    )


@pytest.fixture(params=["disk", "memory"])
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    root = str(tmp_path / "ws")
    seen = SeenFiles(tmp_path / "state" / "seen.sqlite")
    memory = MemoryWorkspace() if request.param == "memory" else None
    tools = workspace_tools(seen, PathQueue()) if memory is None else memory_tools(memory, seen)
    context = CallContext("default", "c1", "r1", "k0", WorkspaceGrant(root=root))
    bench = Bench(root, {tool.name: tool for tool in tools}, memory, context)
    bench.folder("")
    if memory is not None:
        memory.folders.discard(root + "/")
        memory.folders.add(root)
    yield bench
    await seen.close()


@pytest.fixture
async def disk(tmp_path: Path) -> AsyncIterator[Bench]:
    """For what only a real disk has."""
    root = tmp_path / "ws"
    root.mkdir()
    seen = SeenFiles(tmp_path / "state" / "seen.sqlite")
    context = CallContext("default", "c1", "r1", "k0", WorkspaceGrant(root=str(root)))
    tools = workspace_tools(seen, PathQueue())
    yield Bench(str(root), {tool.name: tool for tool in tools}, None, context)
    await seen.close()
