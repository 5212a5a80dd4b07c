"""Messages over HTTP: how inbound answers, names that outlive restarts, gateways that come and go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.fixtures.crew import Crew, running_crew, until
from tests.fixtures.fake_orchestrator import FakeOrchestrator
from tests.fixtures.gateway import Gateway, gateway_before
from tests.fixtures.model_server import ModelServer, refuse, text, turn
from tests.fixtures.postgres import ScratchDatabase

ADDRESS = "MY_AGENT_ORCHESTRATOR_LISTEN"


@pytest.fixture
async def asked(database: ScratchDatabase, model_server: ModelServer) -> AsyncIterator[Crew]:
    environ = {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": model_server.base_url}
    async with running_crew(database, environ=environ) as running:
        yield running


def a_gateway(crew: Crew):
    return gateway_before(crew.environ[ADDRESS], crew.folder / "secrets", FakeOrchestrator())


async def running(crew: Crew, conversation_id: str) -> bool:
    return (await crew.get(conversation_id)).running


@pytest.mark.spec("TRN-039", "TRN-042", "TRN-043", "TRN-044", "GTW-047", "GTW-048")
async def test_inbound_says_in_words_how_each_kind_of_turn_ended(
    asked: Crew, model_server: ModelServer
) -> None:
    async with a_gateway(asked) as gateway:

        async def inbound(words: str, **fields: str) -> dict:
            answer = await gateway.http.post("/api/inbound", json={"text": words, **fields})
            assert answer.status_code == 200, answer.text
            return answer.json()

        model_server.play(
            turn(
                {"text": "I look."},
                {"call": {"name": "workspace_list", "arguments": {"path": "."}}},
            ),
            text("Nothing there."),
        )
        done = await inbound("go")
        assert (done["status"], done["steps"], done["text"]) == ("done", 2, "I look.\n\nNothing there.")
        assert (done["agent_id"], done["queued"]) == ("default", False)
        run = await asked.last_run(done["conversation_id"])
        assert run.source == "api"
        conversation = await asked.get(done["conversation_id"])
        assert conversation.channel == "api"

        model_server.play(refuse(400, "no"))
        failed = await inbound("go")
        assert failed["status"] == "error"
        assert len(failed["text"]) > 10

        model_server.play(
            turn(
                {"text": "I write."},
                {"call": {"name": "workspace_write", "arguments": {"path": "a", "content": ""}}},
            )
        )
        paused = await inbound("go", channel="api:other")
        assert paused["status"] == "approval_required"
        first, _, notice = paused["text"].partition("\n\n")
        assert first == "I write."
        assert notice.startswith("Waiting for your decision")

        capped = await asked.open(cost_cap_usd=0.0005)
        await inbound("spend it", conversation_id=capped)
        halted = await inbound("more", conversation_id=capped)
        assert (halted["status"], halted["steps"]) == ("halted", 0)
        # A sentence, never the code.
        assert "cost cap" in halted["text"]
        assert "budget" not in halted["text"]

        gate = model_server.gate("first")
        model_server.play(turn({"gate": "first"}, {"text": "one"}), text("two"))
        going = asyncio.create_task(inbound("go"))
        await gate.reached()
        queued = await inbound("and")
        assert (queued["status"], queued["queued"], queued["steps"]) == ("queued", True, 0)
        assert "waits" in queued["text"]
        gate.release()
        assert (await going)["text"] == "one"

        async def answered() -> bool:
            found = await asked.get(queued["conversation_id"])
            return not found.running and found.messages[-1].content == "two"

        # The answer is read back from the conversation.
        await until(answered)


@pytest.mark.spec("TRN-049", "GTW-013", "GTW-017")
async def test_inbound_needs_no_login_here_and_the_fence_stands_before_it(
    working: Crew, before: Gateway
) -> None:
    body = {"text": "hi"}
    assert (await before.http.post("/api/inbound", json=body)).status_code == 200
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        answer = await before.http.post("/api/inbound", json=body, headers=headers)
        assert answer.status_code == 403
    assert len((await before.http.get("/api/activity/runs")).json()) == 1


@pytest.mark.spec("GTW-081", "GTW-078", "GTW-080", "TRN-053", "TRN-054")
async def test_the_name_of_a_message_outlives_a_restart(working: Crew, before: Gateway) -> None:
    conversation_id = await working.open()
    path = f"/api/conversations/{conversation_id}/messages"
    body = {"text": "once", "request_id": "r-1"}
    first = await before.http.post(path, json=body)
    await working.end("orchestrator")
    await working.start("orchestrator")

    async def reachable() -> bool:
        return (await before.http.get("/api/conversations")).status_code == 200

    await until(reachable)
    again = await before.http.post(path, json=body)
    assert again.status_code == 200
    assert "event: done" in first.text
    assert [line for line in again.text.split("\n") if line.startswith("event: ")] == ["event: done"]
    assert len((await working.get(conversation_id)).messages) == 2
    assert len((await before.http.get("/api/activity/runs")).json()) == 1
    other = await before.http.post(path, json={**body, "text": "something else"})
    assert other.status_code == 409
    for bad in ("", "x" * 101, "ü", "a\nb"):
        refused = await before.http.post(path, json={**body, "request_id": bad})
        assert refused.status_code == 422, bad
    assert len((await working.get(conversation_id)).messages) == 2


@pytest.mark.spec("GTW-004", "GTW-075", "TRN-058")
async def test_a_gateway_goes_and_another_comes_while_the_turn_runs(
    asked: Crew, model_server: ModelServer
) -> None:
    gate = model_server.gate("half")
    model_server.play(turn({"text": "one ", "pieces": 1}, {"gate": "half"}, {"text": "two", "pieces": 1}))
    conversation_id = await asked.open()
    async with a_gateway(asked) as gateway:
        path = f"/api/conversations/{conversation_id}/messages"
        async with gateway.http.stream("POST", path, json={"text": "go"}) as answer:
            assert answer.status_code == 200
            await gate.reached()
    assert await running(asked, conversation_id)
    async with a_gateway(asked) as gateway:
        async with gateway.http.stream("GET", f"/api/conversations/{conversation_id}/turn") as answer:
            lines = answer.aiter_lines()
            assert [await anext(lines) for _ in range(3)][2].endswith('"text":"one "}')
            gate.release()
            rest = [line async for line in lines]
        assert rest[-2].startswith('data: {"type":"done","text":"one two"')
        shown = (await gateway.http.get(f"/api/conversations/{conversation_id}")).json()
    assert [message["content"] for message in shown["messages"]] == ["go", "one two"]


@pytest.mark.spec("GTW-006", "TRN-147", "TRN-157")
async def test_with_nothing_starting_by_itself_http_still_works(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    environ = {
        "MY_AGENT_ROUTES": "openai:test",
        "OPENAI_BASE_URL": model_server.base_url,
        "MY_AGENT_SCHEDULE": "off",
    }
    async with running_crew(database, environ=environ) as crew, a_gateway(crew) as gateway:
        gate = model_server.gate("first")
        model_server.play(turn({"gate": "first"}, {"text": "one"}))
        conversation_id = await crew.open()
        path = f"/api/conversations/{conversation_id}/messages"
        going = asyncio.create_task(gateway.http.post(path, json={"text": "go"}))
        await gate.reached()
        queued = await gateway.http.post(path, json={"text": "waits"})
        assert "event: queued" in queued.text
        await crew.end("orchestrator")
        await asyncio.gather(going, return_exceptions=True)
        await crew.start("orchestrator")

        async def reachable() -> bool:
            return (await gateway.http.get("/api/conversations")).status_code == 200

        await until(reachable)
        other = await crew.open()
        answer = await gateway.http.post(f"/api/conversations/{other}/messages", json={"text": "hello"})
        assert "event: done" in answer.text
        # A whole turn later nothing has begun by itself, and nothing is lost.
        shown = (await gateway.http.get(f"/api/conversations/{conversation_id}")).json()
        assert [item["text"] for item in shown["queued"]] == ["waits"]
        assert shown["running"] is False
        assert (await crew.last_run(conversation_id)).summary == "interrupted"
        assert len(model_server.requests) == 2
        model_server.play(text("two"))
        answer = await gateway.http.post(path, json={"text": "next"})
        assert "event: done" in answer.text
        spoken = [message.content for message in (await crew.get(conversation_id)).messages]
        assert spoken == ["go", "waits\n\nnext", "two"]
