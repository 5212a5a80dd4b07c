"""The acceptance cases of the HTTP API, on a real orchestrator, tools service and database."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fixtures.crew import Crew, running_crew
from tests.fixtures.fake_orchestrator import FakeOrchestrator
from tests.fixtures.gateway import Gateway, gateway_before
from tests.fixtures.postgres import ScratchDatabase

WRITE = '/tool workspace_write {"path": "notes.md", "content": "1.10"}'
ROOT = Path(__file__).parents[3]


def address_of(crew: Crew) -> str:
    return crew.environ["MY_AGENT_ORCHESTRATOR_LISTEN"]


@pytest.fixture
async def whole(crew: Crew) -> AsyncIterator[Gateway]:
    """A gateway in front of the crew."""
    async with gateway_before(address_of(crew), crew.folder / "secrets", FakeOrchestrator()) as gateway:
        yield gateway


def frames(text: str) -> list[dict[str, Any]]:
    """The events of a whole stream."""
    return [json.loads(line.removeprefix("data: ")) for line in text.split("\n") if line.startswith("data: ")]


async def opened(http: httpx.AsyncClient) -> str:
    answer = await http.post("/api/conversations", json={})
    assert answer.status_code == 201
    return str(answer.json()["id"])


@pytest.mark.spec("GTW-045", "GTW-050", "GTW-051")
async def test_inbound(whole: Gateway, crew: Crew) -> None:
    answer = await whole.http.post("/api/inbound", json={"text": "hi"})
    assert answer.status_code == 200
    body = answer.json()
    assert set(body) == {"conversation_id", "agent_id", "text", "status", "steps", "queued"}
    assert (body["status"], body["queued"]) == ("done", False)
    before = await whole.http.get("/api/activity/runs"), await whole.http.get("/api/conversations")
    for source in ("job:abc", "chat", "telegram", "web", "delegate:x", "memory:x"):
        refused = await whole.http.post("/api/inbound", json={"text": "x", "source": source})
        assert refused.status_code == 422, source
    after = await whole.http.get("/api/activity/runs"), await whole.http.get("/api/conversations")
    assert [len(one.json()) for one in before] == [len(one.json()) for one in after]
    labelled = await whole.http.post("/api/inbound", json={"text": "x", "source": "slack:team"})
    assert labelled.status_code == 200
    runs = (await whole.http.get("/api/activity/runs")).json()
    assert runs[0]["source"] == "slack:team"
    assert (await whole.http.post("/api/inbound", json={"text": "x", "request_id": "r"})).status_code == 422
    for body in ({"text": "x", "agent_id": "nobody"}, {"text": "x", "conversation_id": "nowhere"}):
        assert (await whole.http.post("/api/inbound", json=body)).status_code == 404
    too_long = await whole.http.post("/api/inbound", json={"text": "x" * 200_001})
    assert too_long.status_code == 413
    assert re.search(r"200[.,\s]?000", too_long.json()["detail"])


@pytest.mark.spec("GTW-041")
@pytest.mark.parametrize(
    "unknown", ["nope", "0190a000-0000-7000-8000-000000000000", "a%2Fb", "%F0%9F%A6%8A", "..%2f"]
)
async def test_unknown_ids_are_404_on_every_route_that_names_one(whole: Gateway, unknown: str) -> None:
    routes = [
        ("GET", "/api/conversations/{}", None),
        ("PATCH", "/api/conversations/{}", {"title": "x"}),
        ("DELETE", "/api/conversations/{}", None),
        ("POST", "/api/conversations/{}/messages", {"text": "x"}),
        ("GET", "/api/conversations/{}/turn", None),
        ("POST", "/api/conversations/{}/stop", {}),
        ("POST", "/api/conversations/{}/approvals/x", {"approve": True}),
        ("POST", "/api/approvals/{}", {"approve": True}),
        ("GET", "/api/activity/runs/{}", None),
        ("GET", "/api/agents/{}", None),
        ("GET", "/api/agents/{}/prompt", None),
        ("DELETE", "/api/auth/tokens/{}", None),
    ]
    for verb, template, body in routes:
        answer = await whole.http.request(verb, template.format(unknown), json=body)
        assert answer.status_code == 404, (verb, template, answer.text)
        assert isinstance(answer.json()["detail"], str)


@pytest.mark.spec("GTW-063", "GTW-085", "GTW-069", "GTW-077", "GTW-087", "GTW-042", "GTW-132")
async def test_a_paused_turn_is_approved_once_through_either_address(whole: Gateway, crew: Crew) -> None:
    http = whole.http
    for number, path in enumerate(("/api/approvals/{a}", "/api/conversations/{c}/approvals/{a}")):
        conversation = await opened(http)
        write = WRITE.replace("notes", f"notes-{number}")
        sent = await http.post(f"/api/conversations/{conversation}/messages", json={"text": write})
        last = frames(sent.text)[-1]
        assert last["type"] == "approval_required"
        approval = last["approval"]
        assert approval["arguments"] == {"path": f"notes-{number}.md", "content": "1.10"}
        assert approval["status"] == "pending"
        held = await http.post(f"/api/conversations/{conversation}/messages", json={"text": "more"})
        assert held.status_code == 409
        waiting = (await http.get("/api/approvals/waiting")).json()
        assert [one["id"] for one in waiting] == [approval["id"]]
        shown = (await http.get(f"/api/conversations/{conversation}")).json()
        assert shown["pending_approval"]["id"] == approval["id"]
        wrong = await http.post(
            f"/api/conversations/{conversation}/approvals/{approval['id']}/answer", json={"answer": "yes"}
        )
        assert wrong.status_code in (400, 409, 422)
        address = path.format(c=conversation, a=approval["id"])
        decided = await http.post(address, json={"approve": number == 0})
        events = frames(decided.text)
        assert events[-1]["type"] == "done"
        assert isinstance(events[-1]["spent_usd"], int | float)
        assert (crew.workspace / f"notes-{number}.md").exists() == (number == 0)
        again = await http.post(address, json={"approve": True})
        assert again.status_code == 409
    assert (crew.workspace / "notes-0.md").read_text() == "1.10"
    decided_list = (await http.get("/api/approvals?limit=5")).json()
    assert [one["status"] for one in decided_list] == ["denied", "approved"]
    assert {one["decided_by"] for one in decided_list} == {"owner"}
    assert (await http.get("/api/approvals?limit=501")).status_code == 422


@pytest.mark.spec("GTW-134", "GTW-141", "GTW-075")
async def test_a_turn_is_watched_from_elsewhere_and_outlives_its_sender(whole: Gateway, crew: Crew) -> None:
    conversation = await opened(whole.http)
    slow = '/tool shell_run {"command": "sleep 2; echo finished"}'
    await whole.http.patch(f"/api/conversations/{conversation}", json={"autonomous": True})
    sending = f"/api/conversations/{conversation}/messages"
    async with whole.http.stream("POST", sending, json={"text": slow}) as answer:
        assert answer.status_code == 200
        await anext(answer.aiter_lines())
    watched = await whole.http.get(f"/api/conversations/{conversation}/turn")
    assert watched.status_code == 200
    events = frames(watched.text)
    assert events[-1]["type"] == "done"
    assert "user_context" not in {event["type"] for event in events}
    ids = [line.removeprefix("id: ") for line in watched.text.split("\n") if line.startswith("id: ")]
    assert len(ids) == len(events) == len(set(ids))
    numbers = [int(one.rpartition(":")[2]) for one in ids]
    assert numbers == sorted(numbers)
    assert (await whole.http.get(f"/api/conversations/{conversation}/turn")).status_code == 204
    stored = (await whole.http.get(f"/api/conversations/{conversation}")).json()
    assert stored["running"] is False
    assert any("finished" in message["content"] for message in stored["messages"])


@pytest.mark.spec("GTW-137", "GTW-140")
async def test_the_activity_stream_begins_with_a_snapshot_and_holds_no_token_text(whole: Gateway) -> None:
    conversation = await opened(whole.http)
    seen: list[str] = []
    async with whole.http.stream("GET", "/api/activity/stream", headers={"Last-Event-ID": "x:1"}) as answer:
        lines = answer.aiter_lines()
        assert await anext(lines) == "event: snapshot"
        sent = await whole.http.post(
            f"/api/conversations/{conversation}/messages", json={"text": "a marked word " * 100}
        )
        assert frames(sent.text)[-1]["type"] == "done"
        async with asyncio.timeout(30):
            async for line in lines:
                seen.append(line)
                if '"status":"done"' in line:
                    break
    names = {line.removeprefix("event: ") for line in seen if line.startswith("event: ")}
    assert names <= {"run", "event", "conversation", "snapshot"}
    assert not any("text_delta" in line or '"type":"thinking"' in line for line in seen)


@pytest.mark.spec("GTW-056", "GTW-055", "GTW-052")
async def test_a_conversation_is_changed_and_read(whole: Gateway) -> None:
    conversation = await opened(whole.http)
    path = f"/api/conversations/{conversation}"
    changed = await whole.http.patch(path, json={"title": "Größe 🦊", "cost_cap_usd": 0.25})
    assert (changed.json()["title"], changed.json()["cost_cap_usd"]) == ("Größe 🦊", 0.25)
    assert (await whole.http.patch(path, json={"cost_cap_usd": -1})).status_code == 422
    kept = await whole.http.patch(path, json={"autonomous": True})
    assert (kept.json()["title"], kept.json()["autonomous"]) == ("Größe 🦊", True)
    first, second = await whole.http.get(path), await whole.http.get(path)
    assert first.content == second.content
    listed = (await whole.http.get("/api/conversations")).json()
    assert [one["id"] for one in listed] == [conversation]
    assert (await whole.http.delete(path)).status_code == 204
    assert (await whole.http.get(path)).status_code == 404


@pytest.mark.spec("GTW-043")
async def test_no_answer_holds_a_key(database: ScratchDatabase) -> None:
    key = "sk-secret1234567890abcdef"
    async with (
        running_crew(database, environ={"OPENROUTER_API_KEY": key}) as crew,
        gateway_before(address_of(crew), crew.folder / "secrets", FakeOrchestrator()) as gateway,
    ):
        for path in gateway_reads(await gateway.http.get("/api/openapi.json")):
            answer = await gateway.http.get(path)
            assert answer.status_code == 200, path
            assert key not in answer.text
            for secret_file in (crew.folder / "secrets").rglob("*.token"):
                assert secret_file.read_text().strip() not in answer.text
        keys = {k["name"]: k["present"] for k in (await gateway.http.get("/api/connections")).json()["keys"]}
        assert keys["OPENROUTER_API_KEY"] is True


def gateway_reads(document: httpx.Response) -> list[str]:
    """Every address that can be read without naming anything, streams left out."""
    return [
        path
        for path, operations in document.json()["paths"].items()
        if "get" in operations and "{" not in path and "stream" not in path
    ]


@pytest.mark.spec("GTW-268", "GTW-270", "GTW-271", "GTW-030")
async def test_the_documented_program_talks_to_the_whole_crew(
    database: ScratchDatabase, tmp_path: Path
) -> None:
    async with (
        running_crew(database) as crew,
        gateway_before(address_of(crew), crew.folder / "secrets", FakeOrchestrator()) as local,
    ):
        made = await local.http.post(
            "/api/auth/tokens", json={"name": "report", "scopes": ["chat", "approve"]}
        )
        token = made.json()["token"]
        text = (ROOT / "docs" / "automation.md").read_text("utf-8")
        (program,) = re.findall(r"```python\n(.*?)```", text, re.S)
        script = tmp_path / "client.py"
        script.write_text(f"{program}\nprint(repr(run(*sys.argv[1:])))\n")
        async with gateway_before(
            address_of(crew), crew.folder / "secrets", FakeOrchestrator(), auth="owner"
        ) as guarded:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, str(script), guarded.grpc_address, token, WRITE),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )
            out, err = await asyncio.wait_for(process.communicate(), 60)
        assert process.returncode == 0, err.decode()
        assert "workspace_write" in err.decode()
        assert (crew.workspace / "notes.md").read_text() == "1.10"
        run = (await local.http.get("/api/activity/runs")).json()[0]
        assert (run["source"], run["status"]) == ("grpc:nightly-report", "done")
        decided = (await local.http.get("/api/approvals")).json()
        assert [one["decided_by"] for one in decided] == ["token:report"]
        assert out
