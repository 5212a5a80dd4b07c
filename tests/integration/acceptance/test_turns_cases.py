"""The acceptance cases of turns.md by number: those of messages, decisions, the queue and stops.

Cases 19 to 29 stand in test_turns_cases_of_models.py. Case 30 is here without its Telegram turn: the
crew has no Telegram channel yet, so a turn of another sender stands for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.fixtures.crew import until
from tests.fixtures.model_server import ModelServer, call, text
from tests.fixtures.postgres import ScratchDatabase
from tests.integration.acceptance.web import Web, frames_of, of_kind, routed, web_of

WRITE = '/tool workspace_write {"path":"a.txt","content":"1"}'
ASK = '/tool ask_user {"question":"Which?","options":["a","b"],"default":"b"}'
LONG = "word " * 400


@pytest.fixture
async def web(database: ScratchDatabase) -> AsyncIterator[Web]:
    async with web_of(database) as opened:
        yield opened


@pytest.fixture
async def slow(database: ScratchDatabase) -> AsyncIterator[Web]:
    async with web_of(database, environ={"MY_AGENT_ROUTES": "fake:slow"}) as opened:
        yield opened


async def asked_to_write(web: Web) -> tuple[str, dict]:
    """Case 5, up to the open request."""
    reply = await web.inbound(WRITE)
    assert reply["status"] == "approval_required"
    return reply["conversation_id"], await web.pending(reply["conversation_id"])


async def begun(web: Web, conversation_id: str) -> asyncio.Task:
    """A long answer that is being written."""
    sending = asyncio.create_task(web.send(conversation_id, LONG))

    async def running() -> bool:
        return (await web.get(conversation_id))["running"]

    await until(running)
    return sending


async def test_case_01_two_inbound_messages_of_a_day_share_a_conversation(web: Web) -> None:
    replies = [await web.inbound("hello"), await web.inbound("hello")]
    for reply in replies:
        assert (reply["status"], reply["queued"]) == ("done", False)
        assert "hello" in reply["text"]
    assert replies[0]["conversation_id"] == replies[1]["conversation_id"]
    assert [run["source"] for run in await web.runs(replies[0]["conversation_id"])] == ["api", "api"]


async def test_case_02_two_channels_are_two_conversations(web: Web) -> None:
    replies = [await web.inbound("hello", channel=channel) for channel in ("api:a", "api:b")]
    assert replies[0]["conversation_id"] != replies[1]["conversation_id"]


async def test_case_03_a_reserved_source_is_refused_and_leaves_nothing(web: Web) -> None:
    await web.inbound("before")
    paths = ("/api/conversations", "/api/activity/runs")
    before = [(await web.http.get(path)).json() for path in paths]
    await web.inbound("x", 422, source="job:coach/brief")
    assert [(await web.http.get(path)).json() for path in paths] == before


async def test_case_04_an_unknown_agent_is_404(web: Web) -> None:
    await web.inbound("x", 404, agent_id="nobody")


async def test_case_05_a_writing_call_waits_for_a_person(web: Web) -> None:
    conversation_id, approval = await asked_to_write(web)
    assert not (web.crew.workspace / "a.txt").exists()
    await web.inbound("more", 409, conversation_id=conversation_id)
    assert approval["tool"] == "workspace_write"


async def test_case_06_an_approval_runs_the_call_once_in_the_same_run(web: Web) -> None:
    conversation_id, approval = await asked_to_write(web)
    [paused] = await web.runs(conversation_id)
    frames = await web.decide(approval, approve=True)
    assert [frame["ok"] for frame in of_kind(frames, "tool_result")] == [True]
    assert frames[-1]["type"] == "done"
    file = web.crew.workspace / "a.txt"
    assert file.read_text() == "1"
    [run] = await web.runs(conversation_id)
    assert (run["id"], run["status"]) == (paused["id"], "done")
    file.write_text("by hand")
    await web.decide(approval, 409, approve=True)
    assert file.read_text() == "by hand"


async def test_case_07_a_denial_is_a_refusal_and_the_turn_goes_on(web: Web) -> None:
    conversation_id, approval = await asked_to_write(web)
    frames = await web.decide(approval, approve=False)
    assert not (web.crew.workspace / "a.txt").exists()
    assert [frame["ok"] for frame in of_kind(frames, "tool_result")] == [False]
    assert frames[-1]["type"] == "done"
    assert len(await web.results(conversation_id)) == 1
    assert (await web.http.get("/api/approvals")).json()[0]["status"] == "denied"


async def test_case_08_always_counts_in_this_conversation_alone(web: Web) -> None:
    conversation_id, approval = await asked_to_write(web)
    await web.decide(approval, approve=True, always=True)
    frames = await web.send(conversation_id, WRITE.replace('"1"', '"2"'))
    assert frames[-1]["type"] == "done"
    assert (web.crew.workspace / "a.txt").read_text() == "2"
    elsewhere = await web.send(await web.open(), WRITE.replace("a.txt", "b.txt"))
    assert elsewhere[-1]["type"] == "approval_required"


async def test_case_09_a_request_left_alone_expires(database: ScratchDatabase) -> None:
    async with web_of(database, config="approval_ttl_seconds: 1\n") as web:
        conversation_id, approval = await asked_to_write(web)
        await web.rests(conversation_id)
        [decided] = (await web.http.get("/api/approvals")).json()
        assert decided["status"] == "expired"
        assert not (web.crew.workspace / "a.txt").exists()
        assert [run["status"] for run in await web.runs(conversation_id)] == ["done"]
        [result] = await web.results(conversation_id)
        assert "nothing changed" in result
        assert "another tool" in result
        await web.decide(approval, 409, approve=True)


async def test_case_10_a_dangerous_command_asks_an_autonomous_agent(web: Web) -> None:
    conversation_id = await web.open(autonomous=True)
    frames = await web.send(conversation_id, '/tool shell_run {"command":"sudo true"}')
    approval = frames[-1]["approval"]
    assert "sudo " in approval["reason"]
    assert approval["may_always"] is False


async def test_case_11_a_command_on_both_lists_asks(database: ScratchDatabase) -> None:
    config = 'shell_allow_patterns: ["git status"]\nshell_ask_patterns: ["git status"]\n'
    async with web_of(database, config=config) as web:
        frames = await web.send(await web.open(), '/tool shell_run {"command":"git status"}')
        assert frames[-1]["type"] == "approval_required"


async def test_case_12_a_question_is_answered_and_not_approved(web: Web) -> None:
    conversation_id = await web.open(autonomous=True)
    assert (await web.send(conversation_id, ASK))[-1]["type"] == "approval_required"
    question = await web.pending(conversation_id)
    await web.decide(question, 409, approve=True)
    assert (await web.pending(conversation_id))["id"] == question["id"]
    path = f"/api/conversations/{conversation_id}/approvals/{question['id']}/answer"
    frames = frames_of((await web.http.post(path, json={"answer": "a"})).text)
    assert frames[-1]["type"] == "done"
    assert await web.results(conversation_id) == ["a"]


async def test_case_13_an_unanswered_question_takes_its_default(database: ScratchDatabase) -> None:
    async with web_of(database, config="approval_ttl_seconds: 1\n") as web:
        conversation_id = await web.open(autonomous=True)
        await web.send(conversation_id, ASK)
        await web.rests(conversation_id)
        [result] = await web.results(conversation_id)
        assert "b" in result
        assert "decided" in result
        [decided] = (await web.http.get("/api/approvals")).json()
        assert decided["status"] != "denied"
        assert [run["status"] for run in await web.runs(conversation_id)] == ["done"]


async def test_case_14_messages_sent_meanwhile_are_answered_together(slow: Web) -> None:
    conversation_id = await slow.open()
    sending = await begun(slow, conversation_id)
    for position, words in enumerate(("one", "two"), 1):
        [frame] = await slow.send(conversation_id, words)
        assert (frame["type"], frame["kind"], frame["position"]) == ("queued", "follow_up", position)
    assert (await sending)[-1]["type"] == "done"
    await slow.rests(conversation_id, runs=2)
    messages = (await slow.get(conversation_id))["messages"]
    assert [message["content"] for message in messages if message["role"] == "user"][1] == "one\n\ntwo"


async def test_case_15_a_queue_holds_twenty(slow: Web) -> None:
    conversation_id = await slow.open()
    sending = await begun(slow, conversation_id)
    for number in range(20):
        [frame] = await slow.send(conversation_id, f"m{number}")
        assert frame["type"] == "queued"
    await slow.send(conversation_id, "one more", 429)
    assert len((await slow.get(conversation_id))["queued"]) == 20
    await slow.http.post(f"/api/conversations/{conversation_id}/stop", json={})
    await sending


async def test_case_16_a_bare_steer_is_refused_and_an_idle_one_is_a_message(slow: Web) -> None:
    conversation_id = await slow.open()
    await slow.send(conversation_id, "/steer", 422)
    await slow.send(conversation_id, "/steer hello")
    sending = await begun(slow, conversation_id)
    await slow.send(conversation_id, "/steer", 422)
    shown = await slow.get(conversation_id)
    assert shown["queued"] == []
    assert shown["messages"][0]["content"] == "hello"
    await slow.http.post(f"/api/conversations/{conversation_id}/stop", json={})
    await sending


async def test_case_17_a_steer_reaches_the_model_right_behind_the_result(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    async with web_of(database, environ=routed(model_server)) as web:
        model_server.play(call("shell_run", {"command": "sleep 2; echo slept"}), text("done"))
        conversation_id = await web.open(autonomous=True)
        sending = asyncio.create_task(web.send(conversation_id, "go"))

        async def in_the_tool() -> bool:
            found = await web.runs(conversation_id)
            return bool(found) and any(step["kind"] == "tool" for step in found[0]["steps"])

        await until(in_the_tool)
        [frame] = await web.send(conversation_id, "/steer look at B")
        assert (frame["type"], frame["kind"]) == ("queued", "steer")
        assert (await sending)[-1]["type"] == "done"
        second = model_server.requests[1].body["messages"]
        assert [(message["role"], "slept" in message["content"]) for message in second[-2:-1]] == [
            ("tool", True)
        ]
        assert (second[-1]["role"], second[-1]["content"]) == ("user", "look at B")
        [run] = await web.runs(conversation_id)
        assert "steer" in [step["kind"] for step in run["steps"]]


async def test_case_18_stop_hands_back_what_waited_and_starts_nothing(slow: Web) -> None:
    conversation_id = await slow.open()
    sending = await begun(slow, conversation_id)
    for words in ("one", "two"):
        await slow.send(conversation_id, words)
    stopped = await slow.http.post(f"/api/conversations/{conversation_id}/stop", json={})
    assert stopped.json() == {"cleared": ["one", "two"], "cancelled": True}
    await sending
    await slow.rests(conversation_id)
    [run] = await slow.runs(conversation_id)
    assert run["summary"] == "interrupted"
    assert len((await slow.get(conversation_id))["queued"]) == 0


async def test_case_30_a_turn_is_watched_whoever_began_it(slow: Web) -> None:
    conversation_id = await slow.open()
    path = f"/api/conversations/{conversation_id}/turn"
    assert (await slow.http.get(path)).status_code == 204
    sending = asyncio.create_task(slow.inbound("some words to say", conversation_id=conversation_id))

    async def running() -> bool:
        return (await slow.get(conversation_id))["running"]

    await until(running)
    frames = frames_of((await slow.http.get(path)).text)
    assert frames[-1]["type"] == "done"
    assert "".join(frame["text"] for frame in of_kind(frames, "text_delta")) == "some words to say"
    assert (await sending)["status"] == "done"
