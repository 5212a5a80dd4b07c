"""Tests on a real engine. They need images, so they run where CREW_E2E_CONTAINERS=1 says those are made."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator

import pytest

from tests.e2e.compose.engine import Stack, docker


@pytest.fixture(scope="session")
def engine() -> None:
    """Skips without the switch; with it a missing engine is a failure."""
    if os.environ.get("CREW_E2E_CONTAINERS") != "1":
        pytest.skip("needs a Docker engine and the images: .ci/run makes both, or set CREW_E2E_CONTAINERS=1")
    docker("version")


@pytest.fixture(scope="module")
def deployment(engine: None) -> Iterator[Stack]:
    """The shipped compose file, up and healthy on volumes of its own; removed afterwards."""
    stack = Stack(f"crewtest{uuid.uuid4().hex[:8]}", {"MY_AGENT_ROUTES": "fake:echo"})
    try:
        stack.up()
        yield stack
    finally:
        stack.down(volumes=True)
