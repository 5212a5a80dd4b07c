"""The HTTP surface of conversations, turns, approvals and runs, route by route."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest

from tests.fixtures.crew import Crew
from tests.fixtures.gateway import Gateway

WRITE = '/tool workspace_write {"path": "a.txt", "content": "1"}'
QUESTION = '/tool ask_user {"question": "Which?", "options": ["a", "b"], "default": "b"}'

# Every route with what it answers for an object in the state it is for. {c} is an idle conversation
# with one message {m}, {p} one that waits for {a}, {q} one that waits for the question {o}, {r} a run.
ROUTES: list[tuple[str, str, dict[str, Any] | None, int]] = [
    ("GET", "/api/health", None, 200),
    ("POST", "/api/inbound", {"text": "hi"}, 200),
    ("GET", "/api/conversations", None, 200),
    ("POST", "/api/conversations", {}, 201),
    ("GET", "/api/conversations/{c}", None, 200),
    ("PATCH", "/api/conversations/{c}", {"title": "New"}, 200),
    ("POST", "/api/conversations/{c}/messages", {"text": "hi"}, 200),
    ("GET", "/api/conversations/{c}/turn", None, 204),
    ("POST", "/api/conversations/{c}/stop", {}, 200),
    ("POST", "/api/conversations/{c}/fork", {"before_message_id": "{m}"}, 201),
    ("GET", "/api/messages/search?q=hi", None, 200),
    ("GET", "/api/approvals", None, 200),
    ("POST", "/api/conversations/{p}/approvals/{a}", {"approve": False}, 200),
    ("POST", "/api/approvals/{b}", {"approve": False}, 200),
    ("POST", "/api/conversations/{q}/approvals/{o}/answer", {"answer": "a"}, 200),
    ("GET", "/api/activity/runs", None, 200),
    ("GET", "/api/activity/runs/{r}", None, 200),
    ("GET", "/api/activity/runs/{r}/trajectory", None, 200),
    ("GET", "/api/stats", None, 200),
    ("DELETE", "/api/conversations/{c}", None, 204),
]
STREAM = "/api/activity/stream"
NO_VERBS = {"GET", "POST", "PUT", "PATCH", "DELETE"}


async def waiting(working: Crew, words: str) -> tuple[str, str]:
    conversation_id = await working.open()
    await working.send(conversation_id, words)
    return conversation_id, await working.pending(conversation_id)


@pytest.mark.spec("TRN-324", "GTW-053", "GTW-094")
async def test_every_route_answers_with_its_methods_and_no_other(working: Crew, before: Gateway) -> None:
    idle = await working.open()
    await working.send(idle, "hi there")
    (paused, approval), (_, other), (asks, question) = [
        await waiting(working, words) for words in (WRITE, WRITE, QUESTION)
    ]
    names = {
        "{c}": idle,
        "{m}": (await working.get(idle)).messages[0].id,
        "{p}": paused,
        "{a}": approval,
        "{b}": other,
        "{q}": asks,
        "{o}": question,
        "{r}": (await working.last_run(idle)).id,
    }

    def filled(path: str) -> str:
        for name, value in names.items():
            path = path.replace(name, str(value))
        return path

    verbs: dict[str, set[str]] = {}
    for verb, path, _, _ in ROUTES:
        verbs.setdefault(path.partition("?")[0], set()).add(verb)
    for path, known in verbs.items():
        for verb in NO_VERBS - known:
            answer = await before.http.request(verb, filled(path), json={})
            assert answer.status_code == 405, (verb, path, answer.text)
            assert set(answer.headers["allow"].split(", ")) >= known
            assert isinstance(answer.json()["detail"], str)
    for verb, path, body, status in ROUTES:
        sent = {key: names.get(value, value) for key, value in body.items()} if body is not None else None
        answer = await before.http.request(verb, filled(path), json=sent)
        assert answer.status_code == status, (verb, path, answer.text)
    async with before.http.stream("GET", STREAM) as stream:
        assert stream.status_code == 200
        assert await anext(stream.aiter_lines()) == "event: snapshot"
    assert (await before.http.post(STREAM, json={})).status_code == 405


@pytest.mark.spec("TRN-324", "TRN-325", "GTW-002", "GTW-003")
async def test_an_unknown_address_is_404_under_api_and_the_application_elsewhere(
    working: Crew, before: Gateway
) -> None:
    for path in ("/api/nope", "/api", "/api/", "/api/conversations/x/y/z", "/api/activity/runs/x/y"):
        answer = await before.http.get(path)
        assert answer.status_code == 404, path
        assert answer.headers["content-type"] == "application/json"
        assert len(answer.json()["detail"]) > 10
    application = (await before.http.get("/")).text
    assert "<!doctype html>" in application.lower()
    for path in ("/nope", "/c/123", "/apis"):
        answer = await before.http.get(path)
        assert (answer.status_code, answer.text) == (200, application)


@pytest.mark.spec("TRN-208", "GTW-041", "TRN-089", "TRN-334")
async def test_what_does_not_exist_is_404_with_a_sentence_on_every_route_that_names_it(
    working: Crew, before: Gateway
) -> None:
    paused, approval = await waiting(working, WRITE)
    elsewhere = await working.open()
    unknown = str(uuid4())
    before_it = (await before.http.get(f"/api/conversations/{paused}")).json()
    for verb, path, body in [
        *((verb, path.replace("{c}", unknown), body) for verb, path, body, _ in ROUTES if "{c}" in path),
        ("GET", f"/api/activity/runs/{unknown}", None),
        ("GET", f"/api/activity/runs/{unknown}/trajectory", None),
        ("POST", f"/api/approvals/{unknown}", {"approve": True}),
        ("POST", f"/api/conversations/{unknown}/approvals/{approval}", {"approve": True}),
        # The approval of another conversation.
        ("POST", f"/api/conversations/{elsewhere}/approvals/{approval}", {"approve": True}),
        ("POST", f"/api/conversations/{elsewhere}/approvals/{approval}/answer", {"answer": "a"}),
    ]:
        sent = {key: 1 if value == "{m}" else value for key, value in body.items()} if body else body
        answer = await before.http.request(verb, path, json=sent)
        assert answer.status_code == 404, (verb, path, answer.text)
        assert isinstance(answer.json()["detail"], str)
    assert (await before.http.get(f"/api/conversations/{paused}")).json() == before_it


@pytest.mark.spec("TRN-329", "TRN-337", "GTW-061", "GTW-088", "GTW-091")
@pytest.mark.parametrize(
    ("path", "most"),
    [
        ("/api/approvals", 500),
        ("/api/activity/runs", 500),
        ("/api/conversations", 500),
        ("/api/messages/search?q=x", 50),
    ],
)
async def test_a_limit_outside_its_range_is_422(working: Crew, before: Gateway, path: str, most: int) -> None:
    for limit in (1, 50, most):
        assert (await before.http.get(path, params={"limit": limit, "q": "x"})).status_code == 200
    for limit in (0, -1, most + 1, 2**40, "many", 1.5):
        answer = await before.http.get(path, params={"limit": limit, "q": "x"})
        assert answer.status_code == 422, limit
        assert isinstance(answer.json()["detail"], str)


@pytest.mark.spec("TRN-328", "GTW-054", "TRN-219", "TRN-218")
async def test_a_conversation_has_exactly_its_keys(working: Crew, before: Gateway) -> None:
    content = "long " * 2000
    conversation_id = await working.open()
    words = f"/tool workspace_write {json.dumps({'path': 'a.txt', 'content': content})}"
    await working.send(conversation_id, words)
    shown = (await before.http.get(f"/api/conversations/{conversation_id}")).json()
    assert set(shown) >= {
        "id",
        "agent_id",
        "channel",
        "title",
        "created_at",
        "updated_at",
        "autonomous",
        "skills",
        "auto_approve",
        "approval_ttl_seconds",
        "cost_cap_usd",
        "spent_usd",
        "unknown_cost_calls",
        "over_budget",
        "forked_from",
        "running",
        "queued",
        "pending_approval",
        "messages",
    }
    assert (shown["forked_from"], shown["approval_ttl_seconds"], shown["running"]) == (None, None, False)
    assert shown["queued"] == []
    assert shown["created_at"].endswith("Z")
    approval = shown["pending_approval"]
    assert set(approval) >= {
        "id",
        "conversation_id",
        "kind",
        "tool",
        "tool_call_id",
        "arguments",
        "reason",
        "options",
        "answer",
        "status",
        "created_at",
        "expires_at",
    }
    assert (approval["kind"], approval["status"], approval["answer"]) == ("tool", "pending", None)
    assert approval["options"] == []
    # The person reads every argument whole.
    assert approval["arguments"] == {"path": "a.txt", "content": content}
    for message in shown["messages"]:
        assert set(message) >= {
            "id",
            "seq",
            "role",
            "content",
            "tool_calls",
            "tool_call_id",
            "name",
            "provider",
            "model",
            "cost_usd",
            "created_at",
            "context",
            "calls",
            "received_chars",
            "printed_chars",
        }
    assert [message["seq"] for message in shown["messages"]] == [1, 2]
    await before.http.post(f"/api/approvals/{approval['id']}", json={"approve": False})
    after = (await before.http.get(f"/api/conversations/{conversation_id}")).json()
    assert after["pending_approval"] is None
    question, _ = await waiting(working, QUESTION)
    asked = (await before.http.get(f"/api/conversations/{question}")).json()["pending_approval"]
    assert (asked["kind"], asked["options"]) == ("question", ["a", "b"])


@pytest.mark.spec("TRN-281", "GTW-093")
async def test_a_run_has_exactly_its_keys(working: Crew, before: Gateway) -> None:
    conversation_id = await working.open()
    await working.send(conversation_id, '/tool workspace_list {"path": "."}')
    run_id = (await working.last_run(conversation_id)).id
    run = (await before.http.get(f"/api/activity/runs/{run_id}")).json()
    assert set(run) == {
        "id",
        "agent_id",
        "source",
        "conversation_id",
        "status",
        "summary",
        "after_seq",
        "started_at",
        "finished_at",
        "cost_usd",
        "unknown_cost_calls",
        "steps",
    }
    model, tool, _ = run["steps"]
    assert {"route", "first_token_ms", "ms", "cost_usd", "prompt_tokens", "completion_tokens"} <= set(model)
    assert {"cached_tokens", "reasoning_tokens"} <= set(model)
    assert (tool["name"], tool["arguments"], tool["ok"]) == ("workspace_list", {"path": "."}, True)
    assert not {"calls", "received_chars", "printed_chars"} & set(tool)
    listed = (await before.http.get("/api/activity/runs", params={"conversation_id": conversation_id})).json()
    assert listed == [run]
