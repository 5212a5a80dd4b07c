"""A run as a file: over HTTP and gRPC, whole and cut, without secrets, with what it delegated."""

from __future__ import annotations

import json
from uuid import uuid4

import grpc
import psycopg
import pytest
from crew.v1 import runs_pb2, runs_pb2_grpc

from tests.fixtures.crew import Crew, http_status_of
from tests.fixtures.gateway import Gateway
from tests.integration.activity.key import KEY

LONG = "".join(f"line {n:04}\n" for n in range(400))


async def run_of(working: Crew, conversation_id: str) -> str:
    return (await working.last_run(conversation_id)).id


async def fetched(before: Gateway, run_id: str, **query: str) -> dict:
    answer = await before.http.get(f"/api/activity/runs/{run_id}/trajectory", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.spec("TRN-309", "TRN-315", "GTW-094")
async def test_a_run_comes_as_a_file_nobody_keeps_and_opens_with_a_warning(
    working: Crew, before: Gateway
) -> None:
    conversation_id = await working.open(title="Groceries\nfor Monday")
    (working.workspace / "a.md").write_text("milk")
    await working.send(conversation_id, '/tool workspace_read {"path": "a.md"}')
    run_id = await run_of(working, conversation_id)

    answer = await before.http.get(f"/api/activity/runs/{run_id}/trajectory")
    assert answer.headers["content-disposition"] == f'attachment; filename="run-{run_id}.json"'
    assert answer.headers["content-type"].startswith("application/json")
    assert answer.headers["cache-control"] == "no-store"
    tree = answer.json()
    assert next(iter(tree)) == "warning"
    assert tree["warning"].startswith("Read this through before you share it")
    assert tree["slice"] == "by_mark"
    assert tree["run"]["id"] == run_id
    assert [step["kind"] for step in tree["run"]["steps"]] == ["model", "tool", "model"]
    assert [message["role"] for message in tree["messages"]] == ["user", "assistant", "tool", "assistant"]
    call = tree["messages"][1]["tool_calls"][0]
    assert (call["name"], call["arguments"]) == ("workspace_read", {"path": "a.md"})
    assert tree["messages"][2]["tool_call_id"] == call["id"]
    assert "milk" in tree["messages"][2]["content"]

    page = await before.http.get(f"/api/activity/runs/{run_id}/trajectory", params={"format": "md"})
    assert page.headers["content-disposition"] == f'attachment; filename="run-{run_id}.md"'
    assert page.headers["content-type"].startswith("text/markdown")
    assert page.headers["cache-control"] == "no-store"
    lines = page.text.splitlines()
    assert lines[0].startswith("> **Read this through")
    assert "# Groceries for Monday" in lines
    assert "milk" in page.text


@pytest.mark.spec("TRN-309", "TRN-315")
async def test_an_unknown_run_is_404_and_an_unknown_form_422(working: Crew, before: Gateway) -> None:
    conversation_id = await working.open()
    await working.send(conversation_id, "hello")
    run_id = await run_of(working, conversation_id)
    for unknown in (str(uuid4()), "nonsense"):
        answer = await before.http.get(f"/api/activity/runs/{unknown}/trajectory")
        assert answer.status_code == 404
        assert answer.json()["detail"]
    answer = await before.http.get(f"/api/activity/runs/{run_id}/trajectory", params={"format": "pdf"})
    assert answer.status_code == 422


@pytest.mark.spec("TRN-309", "TRN-344")
async def test_programs_get_the_same_file_over_grpc(working: Crew, before: Gateway) -> None:
    conversation_id = await working.open()
    await working.send(conversation_id, "hello")
    run_id = await run_of(working, conversation_id)
    async with grpc.aio.insecure_channel(before.grpc_address) as channel:
        stub = runs_pb2_grpc.RunsStub(channel)
        file = await stub.Trajectory(runs_pb2.TrajectoryRequest(id=run_id))
        assert json.loads(file.content)["messages"][0]["content"] == "hello"
        assert file.file_name == f"run-{run_id}.json"
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.Trajectory(runs_pb2.TrajectoryRequest(id=str(uuid4())))
    assert http_status_of(refused.value) == (404, "NO_RUN")


@pytest.mark.spec("TRN-309", "TRN-310")
async def test_it_holds_exactly_the_messages_of_its_run(working: Crew, before: Gateway) -> None:
    conversation_id = await working.open()
    runs = []
    for text in ("first", "second", "third"):
        await working.send(conversation_id, text)
        runs.append(await run_of(working, conversation_id))
    for run_id, text in zip(runs, ("first", "second", "third"), strict=True):
        tree = await fetched(before, run_id)
        assert [message["content"] for message in tree["messages"]] == [text, text]


@pytest.mark.spec("TRN-310")
async def test_a_run_without_a_mark_is_cut_by_time_and_says_so(working: Crew, before: Gateway) -> None:
    conversation_id = await working.open()
    await working.send(conversation_id, "long ago")
    await working.send(conversation_id, "now")
    run_id = await run_of(working, conversation_id)
    async with await psycopg.AsyncConnection.connect(working.database.owner_url) as connection:
        await connection.execute(
            "update messages set created_at = created_at - interval '1 hour' where seq <= 2"
        )
        await connection.execute("update runs set after_seq = null where id = %s", (run_id,))
    tree = await fetched(before, run_id)
    assert tree["slice"] == "by_time"
    assert [message["content"] for message in tree["messages"]] == ["now", "now"]
    assert (await before.http.get(f"/api/activity/runs/{run_id}")).json()["after_seq"] is None
    page = await before.http.get(f"/api/activity/runs/{run_id}/trajectory?format=md")
    assert "picked by their time" in page.text


@pytest.mark.spec("TRN-312")
async def test_long_results_are_cut_and_say_how_long_they_were_unless_asked_in_full(
    working: Crew, before: Gateway
) -> None:
    conversation_id = await working.open()
    (working.workspace / "long.txt").write_text(LONG)
    await working.send(conversation_id, '/tool workspace_read {"path": "long.txt"}')
    run_id = await run_of(working, conversation_id)
    stored = (await working.get(conversation_id)).messages[2].content
    assert len(stored) > 2000

    cut = (await fetched(before, run_id))["messages"][2]
    assert cut["content"] == f"{stored[:2000]}\n…[cut: {len(stored)} characters in all]"
    assert cut["content_chars"] == len(stored)
    whole = (await fetched(before, run_id, full="1"))["messages"][2]
    assert whole["content"] == stored
    assert "content_chars" not in whole
    page = await before.http.get(f"/api/activity/runs/{run_id}/trajectory?format=md")
    assert f"[cut: {len(stored)} characters in all]" in page.text
    # What the person and the agent said is never cut.
    await working.send(conversation_id, LONG)
    tree = await fetched(before, await run_of(working, conversation_id))
    assert tree["messages"][0]["content"] == LONG


@pytest.mark.spec("TRN-313", "TRN-314", "GTW-043", "GTW-094")
async def test_secrets_are_covered_in_words_notes_arguments_and_at_the_cut(
    working: Crew, before: Gateway
) -> None:
    conversation_id = await working.open(title=f"about {KEY}")
    said = f"use {KEY} or {json.dumps(KEY)} or sk-live-abcdefgh12345 or Bearer abcdefgh.12345"
    await working.send(conversation_id, f"{said}\n/tool workspace_list {json.dumps({'path': KEY})}")
    run_id = await run_of(working, conversation_id)
    straddling = "x" * 1995 + KEY + "tail"
    async with await psycopg.AsyncConnection.connect(working.database.owner_url) as connection:
        notes = json.dumps({"turn_notes": f"The shop's key is {KEY}.", "canvas": {"selection": KEY}})
        await connection.execute("update messages set context = %s where role = 'user'", (notes,))
        await connection.execute("update messages set content = %s where role = 'tool'", (straddling,))
    for query in ({}, {"full": "1"}, {"format": "md"}, {"format": "md", "full": "1"}):
        answer = await before.http.get(f"/api/activity/runs/{run_id}/trajectory", params=query)
        # Every beginning that says something, so that no part of it slips through at a cut.
        assert KEY[:6] not in answer.text.replace("\\", "")
        assert "abcdefgh" not in answer.text
        assert "[redacted]" in answer.text
        assert "The shop's key is [redacted]." in answer.text
    shown = (await before.http.get(f"/api/conversations/{conversation_id}")).json()["messages"][0]
    assert shown["context"] == {"canvas": {"selection": KEY}}
    tree = await fetched(before, run_id)
    assert tree["messages"][0]["context"]["canvas"] == {"selection": "[redacted]"}
    assert tree["messages"][2]["content"].startswith("x" * 1995 + "[reda")


@pytest.mark.spec("TRN-311")
async def test_a_child_is_included_when_one_of_its_calls_opened_it(working: Crew, before: Gateway) -> None:
    conversation_id = await working.open(title="parent")
    await working.send(conversation_id, '/tool workspace_list {"path": "."}')
    run_id = await run_of(working, conversation_id)
    call_id = (await working.get(conversation_id)).messages[1].tool_calls[0].id

    children = {}
    for name, source, parent_call in (
        ("mine", f"delegate:{conversation_id}", call_id),
        ("of another call", f"delegate:{conversation_id}", str(uuid4())),
        ("of another source", "chat", call_id),
    ):
        child = await working.open(title=name)
        await working.send(child, f"task {name}")
        children[name] = await run_of(working, child)
        async with await psycopg.AsyncConnection.connect(working.database.owner_url) as connection:
            await connection.execute(
                "update conversations set parent_conversation_id = %s, parent_call_id = %s where id = %s",
                (conversation_id, parent_call, child),
            )
            await connection.execute("update runs set source = %s where id = %s", (source, children[name]))
    tree = await fetched(before, run_id)
    assert [child["run"]["id"] for child in tree["children"]] == [children["mine"]]
    assert [message["content"] for message in tree["children"][0]["messages"]] == ["task mine"] * 2
    page = await before.http.get(f"/api/activity/runs/{run_id}/trajectory?format=md")
    assert "## mine" in page.text.splitlines()


@pytest.mark.spec("TRN-316")
async def test_an_open_code_block_of_one_message_ends_before_the_next(working: Crew, before: Gateway) -> None:
    conversation_id = await working.open()
    await working.send(conversation_id, "look:\n```python\nx = 1")
    run_id = await run_of(working, conversation_id)
    page = (await before.http.get(f"/api/activity/runs/{run_id}/trajectory?format=md")).text
    first, second = page.split("```python\nx = 1")[1:]
    assert first.startswith("\n```\n\n## 2 · Agent")
    assert second.startswith("\n```\n")


async def test_the_file_of_a_run_whose_conversation_is_gone_has_its_record(
    working: Crew, before: Gateway
) -> None:
    conversation_id = await working.open()
    await working.send(conversation_id, "hello")
    run_id = await run_of(working, conversation_id)
    assert (await before.http.delete(f"/api/conversations/{conversation_id}")).status_code == 204
    tree = await fetched(before, run_id)
    assert (tree["messages"], tree["run"]["status"]) == ([], "done")
