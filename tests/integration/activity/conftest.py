"""A gateway before a crew that works, which holds a key."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.fixtures.crew import Crew, running_crew
from tests.fixtures.fake_orchestrator import FakeOrchestrator
from tests.fixtures.gateway import Gateway, gateway_before
from tests.fixtures.postgres import ScratchDatabase
from tests.integration.activity.key import KEY


@pytest.fixture
async def working(database: ScratchDatabase) -> AsyncIterator[Crew]:
    """A crew that echoes."""
    async with running_crew(database, environ={"SHOP_API_KEY": KEY}) as crew:
        yield crew


@pytest.fixture
async def before(working: Crew) -> AsyncIterator[Gateway]:
    """The way in."""
    address = working.environ["MY_AGENT_ORCHESTRATOR_LISTEN"]
    async with gateway_before(address, working.folder / "secrets", FakeOrchestrator()) as gateway:
        yield gateway
