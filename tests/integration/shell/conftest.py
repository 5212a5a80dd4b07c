"""Commands run for real, in each form of the sandbox that works on this machine."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from services.common.toolhost.contract import (
    CallContext,
    Run,
    ShellLimits,
    ToolError,
    ToolResult,
    Verdict,
    WorkspaceGrant,
    text_result,
)
from services.tools.shell.sandbox.report import SandboxForm, SandboxReport
from services.tools.shell.sandbox.shell_sandbox import FORMS, ShellSandbox
from services.tools.shell.shell_run import ShellRun

# The interpreter itself: a virtual environment's is a link, which a sandbox may not follow.
PYTHON = os.path.realpath(sys.executable)


async def unheard(text: str, details: Mapping[str, Any] | None = None) -> None:
    """Progress that nobody watches."""


@dataclass(frozen=True)
class Shell:
    """`shell_run` of one agent, called as a host calls it but with no pipeline in front."""

    sandbox: ShellSandbox
    grant: WorkspaceGrant
    agent_id: str = "tester"

    @property
    def workspace(self) -> Path:
        return Path(self.grant.root)

    def context(self, **fields: Any) -> CallContext:
        return CallContext(self.agent_id, "c1", "r1", "call1", self.grant, **fields)

    def granted(self, **fields: Any) -> Shell:
        return replace(self, grant=replace(self.grant, **fields))

    async def judge(self, command: str, **arguments: Any) -> Verdict:
        return await ShellRun(self.sandbox).judge(self.context(), {"command": command, **arguments})

    async def call(self, command: str, *, timeout_s: float = 60, **fields: Any) -> ToolResult:
        """The result; an error is raised as the tool raises it."""
        arguments = {"command": command, "timeout_s": timeout_s}
        return await ShellRun(self.sandbox).run(Run(self.context(**fields), arguments, unheard))

    async def result(self, command: str, *, timeout_s: float = 60) -> ToolResult:
        """The result, failed or not."""
        try:
            return await self.call(command, timeout_s=timeout_s)
        except ToolError as error:
            return text_result(error.text, details=error.details, is_error=True, outcome=error.outcome)

    async def python(self, source: str, *arguments: object) -> ToolResult:
        """Run a script with the interpreter, from a file that the command can read."""
        script = self.workspace / "script.py"
        script.write_text(source, "utf-8")
        words = " ".join(f"'{argument}'" for argument in arguments)
        return await self.result(f"{PYTHON} -I -S {script} {words}")


@pytest.fixture(scope="session")
def probed() -> dict[SandboxForm, tuple[ShellSandbox, SandboxReport]]:
    found: dict[SandboxForm, tuple[ShellSandbox, SandboxReport]] = {}
    for form in FORMS:
        sandbox = ShellSandbox(forms=[form])
        found[form] = (sandbox, asyncio.run(sandbox.probe()))
    return found


@pytest.fixture(params=FORMS)
def sandbox(request: pytest.FixtureRequest, probed: dict[SandboxForm, Any]) -> ShellSandbox:
    chosen, report = probed[request.param]
    if report.form is None:
        pytest.skip(f"NOT PROVEN HERE: the {request.param} form does not work: {report.reason}")
    assert isinstance(chosen, ShellSandbox)
    return chosen


@pytest.fixture
def grant(tmp_path: Path) -> WorkspaceGrant:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    temp = tmp_path / "temps" / "tester"
    temp.mkdir(parents=True)
    # As the suite itself may run under limits, these stay below what any machine gives.
    return WorkspaceGrant(
        root=str(workspace), temp_dir=str(temp), limits=ShellLimits(cpu_seconds=60, processes=64)
    )


@pytest.fixture
def plain(grant: WorkspaceGrant) -> Shell:
    """An agent without a sandbox."""
    return Shell(ShellSandbox(forms=()), grant)


@pytest.fixture
def closed(sandbox: ShellSandbox, grant: WorkspaceGrant) -> Shell:
    """`shell_network: false`, `shell_write_paths: [out]`."""
    return Shell(sandbox, replace(grant, shell_network=False, shell_write_paths=["out"]))


@pytest.fixture
def networked(sandbox: ShellSandbox, grant: WorkspaceGrant) -> Shell:
    """`shell_write_paths: [out]` alone."""
    if not sandbox.report.keeps_network:
        pytest.skip(f"NOT PROVEN HERE: {sandbox.report.reason}")
    return Shell(sandbox, replace(grant, shell_write_paths=["out"]))


@pytest.fixture
async def outsider() -> AsyncIterator[asyncio.subprocess.Process]:
    """A process of the same user outside every sandbox."""
    process = await asyncio.create_subprocess_exec(
        PYTHON,
        "-c",
        "import time; print('up', flush=True); time.sleep(300)",
        stdout=asyncio.subprocess.PIPE,
        env={"CREW_TEST_SECRET": "told-to-nobody"},
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"up\n"
    yield process
    process.kill()
    await process.wait()


def running_with(mark: str) -> list[int]:
    """Ids of processes whose command line holds `mark`; this one is not counted."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes()
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if mark.encode() in line and state != "Z":
                found.append(int(entry.name))
    return found


async def until(condition: Callable[[], bool], seconds: float = 30) -> None:
    """Wait until `condition` holds.

    Raises:
        TimeoutError: It did not.
    """
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.02)
