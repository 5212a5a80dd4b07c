"""The audit trail holds every call, although why a read ran is stored with its result."""

from __future__ import annotations

import psycopg
import pytest
from psycopg.rows import dict_row

from tests.fixtures.crew import names_of, running_crew
from tests.fixtures.model_server import ModelServer, text, turn
from tests.fixtures.postgres import ScratchDatabase


@pytest.mark.spec("PIP-112")
async def test_reads_and_changes_are_let_through_before_they_end_and_changes_before_they_begin(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    environ = {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": model_server.base_url}
    reads = [{"call": {"name": "workspace_read", "arguments": {"path": f"{n}.txt"}}} for n in range(4)]
    write = {"call": {"name": "workspace_write", "arguments": {"path": "made.txt", "content": "x"}}}
    model_server.play(turn(*reads), turn(write), text("Done."))
    async with running_crew(database, environ=environ) as crew:
        for number in range(3):
            (crew.workspace / f"{number}.txt").write_text("what it says\n")
        conversation_id = await crew.open(autonomous=True)
        assert names_of(await crew.send(conversation_id, "Read them, then write."))[-1] == "done"
        calls = {
            call.id: call.name
            for message in (await crew.get(conversation_id)).messages
            for call in message.tool_calls
        }
    with psycopg.connect(database.superuser_url, row_factory=dict_row) as connection:
        rows = connection.execute("select * from audit.calls order by id").fetchall()
    assert len(calls) == 5
    for call_id, name in calls.items():
        allowed, ended = [row for row in rows if row["call_id"] == call_id]
        assert (allowed["event"], ended["event"]) == ("allowed", "ended")
        assert allowed["allowed_by"] == ended["allowed_by"]
        assert allowed["arguments_sha256"] == ended["arguments_sha256"]
        # One transaction for a read; a change is on record before its effect, in one of its own.
        assert (allowed["at"] == ended["at"]) is (name == "workspace_read")
    # The fourth file is not there: that it failed is on record too.
    assert [row["ok"] for row in rows if row["event"] == "ended"].count(False) == 1
