"""Crews whose model is the scripted server, and a look into their database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import psycopg
import pytest
from crew.v1 import budgets_pb2_grpc
from psycopg.rows import dict_row

from services.orchestrator.store.pool import Database
from tests.fixtures.crew import Crew, running_crew
from tests.fixtures.model_server import ModelServer
from tests.fixtures.postgres import ScratchDatabase

Rows = Callable[..., list[dict[str, Any]]]
Asking = Callable[..., AbstractAsyncContextManager[Crew]]
Variables = Mapping[str, str]


@pytest.fixture
def rows(database: ScratchDatabase) -> Rows:
    """Run a statement with every right and return what it gives."""

    def run(statement: str, *values: object) -> list[dict[str, Any]]:
        with psycopg.connect(database.superuser_url, autocommit=True, row_factory=dict_row) as connection:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    return run


@pytest.fixture
def asking(database: ScratchDatabase, model_server: ModelServer) -> Asking:
    """Start a crew that asks the scripted model server."""

    def start(
        config: str = "", environ: Mapping[str, str] | None = None
    ) -> AbstractAsyncContextManager[Crew]:
        variables = {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": model_server.base_url}
        return running_crew(database, config=config, environ={**variables, **(environ or {})})

    return start


@pytest.fixture
async def store(database: ScratchDatabase) -> AsyncIterator[Database]:
    """The database as the services see it."""
    opened = Database(database.url)
    await opened.open()
    yield opened
    await opened.close()


@asynccontextmanager
async def second_orchestrator(crew: Crew) -> AsyncIterator[Crew]:
    """Another orchestrator on the home and database of a crew."""
    socket = f"unix:{crew.folder}/run/second.sock"
    second = Crew(crew.folder, {**crew.environ, "MY_AGENT_ORCHESTRATOR_LISTEN": socket}, crew.database)
    try:
        await second.start("orchestrator")
        yield second
    finally:
        await second.end()
        if second.channel is not None:
            await second.channel.close()


def budgets_of(crew: Crew) -> budgets_pb2_grpc.BudgetsAsyncStub:
    """Client of crew.v1.Budgets."""
    stub: budgets_pb2_grpc.BudgetsAsyncStub = crew.stub(budgets_pb2_grpc.BudgetsStub)
    return stub
