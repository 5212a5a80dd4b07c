"""One sandbox for all tests of this folder that do not kill it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.fixtures.script_sandbox import Caller, SandboxProcess, sandbox_process


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    with sandbox_process(tmp_path_factory.mktemp("sb")) as running:
        yield running


@pytest.fixture
async def caller(sandbox: SandboxProcess) -> AsyncIterator[Caller]:
    caller = Caller(sandbox)
    yield caller
    await caller.close()


@pytest.fixture
def own_sandbox(tmp_path: Path) -> Iterator[SandboxProcess]:
    """One that the test may kill."""
    with sandbox_process(tmp_path) as running:
        yield running
