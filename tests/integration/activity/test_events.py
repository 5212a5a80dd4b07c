"""The events of a turn as they go over HTTP: their frames, their keys, their order, their end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest

from tests.fixtures.crew import Crew, running_crew, until
from tests.fixtures.fake_orchestrator import FakeOrchestrator
from tests.fixtures.gateway import Gateway, gateway_before
from tests.fixtures.model_server import ModelServer, call, refuse, text, turn
from tests.fixtures.postgres import ScratchDatabase

# What each event holds beside its type; nothing else is in it.
KEYS = {
    "thinking": set(),
    "text_delta": {"text"},
    "tool_call_delta": {"index", "name", "chunk", "attempt"},
    "assistant_message": {"message"},
    "tool_call": {"id", "name", "arguments"},
    "tool_progress": {"id", "text", "details"},
    "tool_result": {
        "id",
        "name",
        "ok",
        "output",
        "ms",
        "cost_usd",
        "calls",
        "received_chars",
        "printed_chars",
        "shortened",
        "original_chars",
    },
    "approval_required": {"approval"},
    "steer": {"text", "count"},
    "queued": {"item_id", "kind", "position"},
    "route_fallback": {"route", "error", "next_route"},
    "escalated": {"reason", "route", "error"},
    "done": {"text", "steps", "spent_usd", "unknown_cost_calls"},
    "halted": {"reason", "text", "steps", "spent_usd", "unknown_cost_calls"},
    "error": {"message"},
}
LAST = {"done", "halted", "error", "approval_required", "queued"}

Frames = list[dict[str, Any]]


@asynccontextmanager
async def crew_behind_a_gateway(
    database: ScratchDatabase, model_server: ModelServer, **options: Any
) -> AsyncIterator[tuple[Crew, Gateway]]:
    environ = {
        "MY_AGENT_ROUTES": "openai:first,openai:second",
        "OPENAI_BASE_URL": model_server.base_url,
        "OPENAI_API_KEY": "sk-secret-of-the-test",
    }
    async with (
        running_crew(database, environ=environ, **options) as crew,
        gateway_before(
            crew.environ["MY_AGENT_ORCHESTRATOR_LISTEN"], crew.folder / "secrets", FakeOrchestrator()
        ) as gateway,
    ):
        yield crew, gateway


def frames_of(body: str) -> Frames:
    """The events of a stream; each frame is an ``event``, an ``id`` and one line of ``data``."""
    frames = []
    for frame in body.removesuffix("\n\n").split("\n\n"):
        if frame.startswith(":"):
            continue
        lines = frame.split("\n")
        assert [line.partition(": ")[0] for line in lines] in (["event", "id", "data"], ["event", "data"])
        data = json.loads(lines[-1].removeprefix("data: "))
        assert data["type"] == lines[0].removeprefix("event: ")
        frames.append(data)
    return frames


async def sent(gateway: Gateway, conversation_id: str, words: str) -> Frames:
    answer = await gateway.http.post(f"/api/conversations/{conversation_id}/messages", json={"text": words})
    assert answer.status_code == 200, answer.text
    return frames_of(answer.text)


@pytest.mark.spec("TRN-318", "TRN-320", "TRN-321", "TRN-323", "GTW-128", "GTW-131")
async def test_every_event_has_its_keys_and_its_place(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    agent = "escalation_route: openai:strong\nmax_steps: 4\n"
    gate = model_server.gate("open")
    async with crew_behind_a_gateway(database, model_server, agent=agent) as (crew, gateway):
        model_server.play(
            # A turn with a fallback, thoughts, two calls, a steer, and a pause.
            refuse(402, "no credit for sk-secret-of-the-test"),
            turn(
                {"gate": "open"},
                {"reasoning": "Hm"},
                {"reasoning": " and hm"},
                {"text": "I look. "},
                {"call": {"name": "workspace_list", "arguments": {"path": "."}}},
                {"call": {"name": "shell_run", "arguments": {"command": "echo a; echo b"}}},
            ),
        )
        conversation_id = await crew.open(auto_approve=["shell_run", "workspace_list"])
        sending = asyncio.create_task(sent(gateway, conversation_id, "go"))
        await gate.reached()
        queued = await sent(gateway, conversation_id, "/steer look at B")
        model_server.play(
            refuse(402),
            call("workspace_write", {"path": "a.txt", "content": "1.10"}),
        )
        gate.release()
        paused = await sending

        model_server.play(refuse(402), text("Done."))
        approval = paused[-1]["approval"]
        answer = await gateway.http.post(f"/api/approvals/{approval['id']}", json={"approve": True})
        resumed = frames_of(answer.text)
        # A turn that every route refuses, the last resort too; and one that a limit ends.
        model_server.play(*[refuse(402)] * 3)
        failed = await sent(gateway, conversation_id, "again")
        model_server.play(*[refuse(402), call("workspace_list", {"path": "."})] * 4)
        halted = await sent(gateway, await crew.open(), "once more")

    assert [frame["type"] for frame in queued] == ["queued"]
    order = [frame["type"] for frame in paused if frame["type"] not in ("text_delta", "tool_call_delta")]
    assert order == [
        "route_fallback",
        "thinking",
        "assistant_message",
        "tool_call",
        "tool_result",
        "tool_call",
        *["tool_progress"] * order.count("tool_progress"),
        "tool_result",
        "steer",
        "route_fallback",
        "assistant_message",
        "tool_call",
        "approval_required",
    ]
    kinds = [frame["type"] for frame in paused]
    assert kinds.index("thinking") < kinds.index("text_delta") < kinds.index("tool_call_delta")
    assert approval["arguments"] == {"path": "a.txt", "content": "1.10"}
    assert [frame["type"] for frame in resumed][-1] == "done"
    assert "escalated" in [frame["type"] for frame in failed]
    assert failed[-1]["type"] == "error"
    assert (halted[-1]["type"], halted[-1]["reason"]) == ("halted", "max_steps")
    every = [*queued, *paused, *resumed, *failed, *halted]
    # How often a command tells how far it is, is its own affair.
    assert {frame["type"] for frame in every} | {"tool_progress"} == set(KEYS)
    for frame in every:
        assert set(frame) - {"type"} == KEYS[frame["type"]], frame["type"]
    for stream in (queued, paused, resumed, failed, halted):
        assert [frame["type"] in LAST for frame in stream] == [*[False] * (len(stream) - 1), True]
    assert "sk-secret-of-the-test" not in str(every)
    assert "Traceback" not in str(every)
    assert len(failed[-1]["message"]) > 10


@pytest.mark.spec("GTW-136")
async def test_text_being_written_is_nowhere_but_in_memory(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    gate = model_server.gate("half")
    async with crew_behind_a_gateway(database, model_server) as (crew, gateway):
        model_server.play(turn({"text": "Half of it", "pieces": 1}, {"gate": "half"}, {"text": "."}))
        conversation_id = await crew.open()
        call_ = crew.sending(conversation_id, "go")
        await gate.reached()
        assert (await call_.read()).text_delta.text == "Half of it"
        async with await psycopg.AsyncConnection.connect(database.superuser_url) as connection:
            for table in ("messages", "run_steps", "runs", "conversations", "turns"):
                cursor = await connection.execute(
                    f"select count(*) from {table} t where t::text like '%Half%'"
                )
                assert await cursor.fetchone() == (0,), table
        model_server.play(text("From the start."))
        await crew.end("orchestrator")
        await crew.start("orchestrator")

        async def answered() -> bool:
            shown = (await gateway.http.get(f"/api/conversations/{conversation_id}")).json()
            return not shown["running"] and len(shown["messages"]) == 2

        await until(answered)
        shown = (await gateway.http.get(f"/api/conversations/{conversation_id}")).json()
    assert [message["content"] for message in shown["messages"]] == ["go", "From the start."]
