"""Over HTTP: a reply that broke off is gone on with, and a compaction is seen by who watches."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.fixtures.crew import Crew, running_crew
from tests.fixtures.fake_orchestrator import FakeOrchestrator
from tests.fixtures.gateway import Gateway, gateway_before
from tests.fixtures.model_server import ModelServer, text, turn
from tests.fixtures.postgres import ScratchDatabase


@pytest.fixture
async def crew(database: ScratchDatabase, model_server: ModelServer) -> AsyncIterator[Crew]:
    """A crew whose model is the scripted server."""
    model_server.models = [{"id": "test", "context_length": 20_000}]
    environ = {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": model_server.base_url}
    async with running_crew(database, environ=environ) as running:
        yield running


@pytest.fixture
async def whole(crew: Crew) -> AsyncIterator[Gateway]:
    """A gateway in front of the crew."""
    address = crew.environ["MY_AGENT_ORCHESTRATOR_LISTEN"]
    async with gateway_before(address, crew.folder / "secrets", FakeOrchestrator()) as gateway:
        yield gateway


async def said(gateway: Gateway, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of a whole stream."""
    answer = await gateway.http.post(path, json=body)
    assert answer.status_code == 200, answer.text
    lines = answer.text.split("\n")
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


@pytest.mark.spec("FLD-013")
async def test_a_reply_that_broke_off_goes_on(whole: Gateway, model_server: ModelServer) -> None:
    model_server.play(turn({"text": "The answer is", "pieces": 1}, {"drop": True}), text(" forty-two."))
    opened = (await whole.http.post("/api/conversations", json={})).json()["id"]
    events = await said(whole, f"/api/conversations/{opened}/messages", {"text": "What is it?"})
    assert events[-1]["type"] == "error"
    events = await said(whole, f"/api/conversations/{opened}/continue", {})
    assert (events[-1]["type"], events[-1]["text"]) == ("done", " forty-two.")
    again = await whole.http.post(f"/api/conversations/{opened}/continue", json={})
    assert again.status_code == 400
    assert "broke off" in again.json()["detail"]


@pytest.mark.spec("FLD-003", "FLD-012")
async def test_a_compaction_is_an_event_a_step_and_a_figure(
    whole: Gateway, model_server: ModelServer
) -> None:
    opened = (await whole.http.post("/api/conversations", json={})).json()["id"]
    usage = {"prompt_tokens": 17_000, "completion_tokens": 1}
    model_server.play(*[text("So.", usage=usage) for _ in range(4)])
    model_server.script.default = text("Summary or answer.")
    for number in range(4):
        events = await said(whole, f"/api/conversations/{opened}/messages", {"text": f"Question {number}"})
    assert events[0] == {"type": "compacted", "turns": 1, "text": events[0]["text"]}
    assert "summary" in events[0]["text"]
    [run] = (await whole.http.get("/api/activity/runs", params={"limit": 1})).json()
    assert [step["kind"] for step in run["steps"]] == ["compacted", "model"]
    assert run["steps"][1]["moved"] == []
    [use] = (await whole.http.get("/api/stats/prompts")).json()["uses"]
    assert (use["agent_id"], use["compactions"], use["moved"]) == ("default", 1, [])
