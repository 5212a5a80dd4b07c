"""A person stops the turn just when its reply has been committed and its process does not know it yet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from crew.v1 import turns_pb2

from services.orchestrator import app
from services.orchestrator.store.pool import Connection, Database
from tests.fixtures.crew import names_of, running_crew
from tests.fixtures.model_server import ModelServer, turn
from tests.fixtures.postgres import ScratchDatabase


class LingeringDatabase(Database):
    """Stands once between the commit of a reply with calls and its return."""

    def __init__(self, url: str, **options: Any) -> None:
        super().__init__(url, **options)
        self._lingered = False
        self.committed, self.go = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        async with super().transaction() as connection:
            yield connection
            cursor = await connection.execute("select 1 from messages where tool_calls is not null")
            stored = await cursor.fetchone() is not None
        if stored and not self._lingered:
            self._lingered = True
            self.committed.set()
            await self.go.wait()


@pytest.mark.spec("TRN-093", "TRN-138", "TRN-094")
async def test_a_stop_right_behind_the_commit_of_a_reply_neither_doubles_nor_breaks_it(
    database: ScratchDatabase, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[LingeringDatabase] = []

    def lingering(url: str, **options: Any) -> LingeringDatabase:
        opened.append(LingeringDatabase(url, **options))
        return opened[-1]

    monkeypatch.setattr(app, "Database", lingering)
    environ = {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": model_server.base_url}
    write = {"call": {"name": "workspace_write", "arguments": {"path": "made.txt", "content": "x"}}}
    model_server.play(turn({"text": "I will write it."}, write))
    async with running_crew(database, environ=environ) as crew:
        [pool] = opened
        conversation_id = await crew.open(autonomous=True)
        running = asyncio.create_task(crew.send(conversation_id, "Write it."))
        await pool.committed.wait()
        stopping = crew.turns.Stop(turns_pb2.StopTurnRequest(conversation_id=conversation_id))
        # The stop has reached the turn when the queue has been emptied, one commit later.
        await asyncio.sleep(0.3)
        pool.go.set()
        assert (await stopping).cancelled
        assert names_of(await running)[-1] == "error"
        found = await crew.get(conversation_id)
        assert [message.role for message in found.messages] == ["user", "assistant", "tool"]
        assert found.messages[1].content == "I will write it."
        # It was whole, and had a price.
        assert (found.unknown_cost_calls, found.spent_usd > 0) == (0, True)
        assert not (crew.workspace / "made.txt").exists()
