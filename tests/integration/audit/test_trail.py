"""What the owner can see of calls afterwards: the audit trail and the history of commands."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import shlex
from pathlib import Path

import grpc
import pytest
from crew.v1 import audit_pb2, audit_pb2_grpc, runs_pb2, turns_pb2

from services.cli.main import main
from services.common.times import day_in
from tests.fixtures.crew import Crew, http_status_of
from tests.fixtures.gateway import Gateway
from tests.integration.audit.conftest import KEY

DOCUMENT = Path(__file__).parents[3] / "docs" / "audit.md"


def tool(name: str, **arguments: object) -> str:
    return f"/tool {name} {json.dumps(arguments)}"


async def entries(crew: Crew, **wanted: object) -> list[audit_pb2.AuditEntry]:
    stub = crew.stub(audit_pb2_grpc.AuditStub)
    return list((await stub.List(audit_pb2.ListAuditRequest(**wanted))).entries)


@pytest.mark.spec("PIP-112")
async def test_each_change_is_listed_with_why_it_was_let_through_and_how_it_ended(working: Crew) -> None:
    asked, free = await working.open(), await working.open(autonomous=True)
    await working.send(asked, tool("workspace_write", path="a.txt", content="1"))
    await working.decide(await working.pending(asked), approve=True)
    await working.send(asked, tool("workspace_write", path="b.txt", content="1"))
    await working.decide(await working.pending(asked), approve=False)
    await working.send(asked, tool("workspace_write", path="c.txt", content="1"))
    await working.decide(await working.pending(asked), approve=True, always=True)
    await working.send(asked, tool("workspace_write", path="c.txt", content="2"))
    await working.send(free, tool("workspace_write", path="d.txt", content="1"))
    await working.send(free, tool("workspace_list", path="."))
    found = await entries(working)
    assert [(one.allowed_by, one.decided_by, one.result) for one in reversed(found)] == [
        ("approved", "owner", "done"),
        ("denied", "owner", "not_run"),
        ("approved", "owner", "done"),
        ("always", "", "done"),
        ("autonomous", "", "done"),
    ]
    for one in found:
        assert one.arguments_sha256 == hashlib.sha256(one.arguments_short.encode()).hexdigest()
    assert found[3].arguments_short == '{"path":"b.txt","content":"1"}'
    first = found[-1]
    assert (first.agent_id, first.conversation_id, first.tool) == ("default", asked, "workspace_write")
    assert first.arguments_short == '{"path":"a.txt","content":"1"}'
    assert (first.effect, first.outcome, first.fault) == ("replace", "done", "")
    assert found[1].rule.startswith("workspace_write")
    run = await working.runs.Get(runs_pb2.GetRunRequest(id=first.run_id))
    assert first.call_id in [step.tool_call_id for step in run.steps]


@pytest.mark.spec("PIP-112")
async def test_what_a_rule_refuses_is_listed_as_not_let_through(working: Crew) -> None:
    conversation_id = await working.open(autonomous=True)
    await working.send(conversation_id, tool("workspace_write", path="../out.txt", content="1"))
    [entry] = await entries(working)
    assert "../out.txt" in entry.arguments_short
    assert entry.result in ("not_run", "failed")
    assert entry.outcome == "not_started"


@pytest.mark.spec("PIP-112")
async def test_the_trail_is_narrowed_and_read_on_page_by_page(working: Crew) -> None:
    one, other = await working.open(autonomous=True), await working.open(autonomous=True)
    for n in range(3):
        await working.send(one, tool("workspace_write", path=f"{n}.txt", content="50%_off"))
    await working.send(other, tool("workspace_list", path="."))
    whole = await entries(working, reads=True)
    assert [entry.tool for entry in whole] == ["workspace_list", *["workspace_write"] * 3]
    assert [entry.tool for entry in await entries(working)] == ["workspace_write"] * 3
    assert len(await entries(working, tool="workspace_list")) == 1
    assert len(await entries(working, conversation_id=other, reads=True)) == 1
    assert len(await entries(working, text="0%_OFF")) == 3
    assert not await entries(working, text="50%x")
    assert not await entries(working, text="5__%")
    assert not await entries(working, agent_id="nobody")
    today = day_in("UTC").isoformat()
    assert len(await entries(working, day=today, reads=True)) == 4
    assert not await entries(working, day="2020-02-29", reads=True)
    pages, before = [], None
    while page := await entries(working, reads=True, limit=1, before=before):
        pages += page
        before = page[-1].id
    assert [entry.id for entry in pages] == [entry.id for entry in whole]


@pytest.mark.spec("PIP-112")
async def test_what_cannot_be_looked_for_is_refused(crew: Crew) -> None:
    wrong = [
        ({"day": "2026-02-30"}, "BAD_DAY"),
        ({"day": "yesterday"}, "BAD_DAY"),
        ({"day": "9999-12-31"}, "BAD_DAY"),
        ({"text": "x" * 201}, "BAD_TEXT"),
        ({"text": "a\0b"}, "BAD_TEXT"),
        ({"before": "1"}, "BAD_POSITION"),
        ({"before": "9" * 30 + "-1"}, "BAD_POSITION"),
        ({"before": "1-99999999999999999999"}, "BAD_POSITION"),
        ({"before": "²-1"}, "BAD_POSITION"),
        ({"limit": 0}, "BAD_LIMIT"),
        ({"limit": 501}, "BAD_LIMIT"),
    ]
    for wanted, reason in wrong:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await entries(crew, **wanted)
        assert http_status_of(refused.value) == (422, reason), wanted


@pytest.mark.spec("PIP-156")
async def test_the_history_of_commands_is_whole_and_holds_no_secret(before: Gateway, working: Crew) -> None:
    conversation_id = await working.open(autonomous=True)
    long = f"echo begins; # {'x' * 3000} {KEY}\nexit 3"
    await working.send(conversation_id, tool("shell_run", command=long))
    await working.send(conversation_id, tool("shell_run", command="printf 12345"))
    answer = await before.http.get("/api/audit", params={"tool": "shell_run"})
    assert answer.status_code == 200
    short, whole = answer.json()
    assert whole["command"] == long.replace(KEY, "[secret]")
    assert (whole["result"], whole["exit_code"], whole["outcome"]) == ("failed", 3, "done")
    assert (whole["allowed_by"], whole["ms"] >= 0) == ("autonomous", True)
    assert (short["command"], short["exit_code"], short["result"]) == ("printf 12345", 0, "done")
    assert short["bytes_out"] >= 5
    run = await before.http.get(f"/api/activity/runs/{short['run_id']}")
    assert run.status_code == 200
    of_whole = await before.http.get(f"/api/activity/runs/{whole['run_id']}")
    escaped = KEY.replace('"', '\\"')
    for shown in (answer.text, of_whole.text):
        assert KEY not in shown
        assert escaped not in shown
    found = await before.http.get("/api/audit", params={"tool": "shell_run", "text": "x" * 200})
    assert [entry["call_id"] for entry in found.json()] == [whole["call_id"]]
    today = day_in("UTC").isoformat()
    on_day = await before.http.get("/api/audit", params={"tool": "shell_run", "day": today})
    assert len(on_day.json()) == 2


@pytest.mark.spec("PIP-112")
async def test_a_call_is_open_until_its_end_is_known(working: Crew) -> None:
    conversation_id = await working.open(autonomous=True)
    words = tool("shell_run", command="touch begun; sleep 60")
    running_turn = asyncio.create_task(working.send(conversation_id, words))
    async with asyncio.timeout(30):
        while not (working.workspace / "begun").exists():
            await asyncio.sleep(0.02)
    [running] = await entries(working, tool="shell_run")
    assert (running.result, running.HasField("outcome")) == ("open", False)
    await working.turns.Stop(turns_pb2.StopTurnRequest(conversation_id=conversation_id))
    await running_turn
    [ended] = await entries(working, tool="shell_run")
    assert (ended.call_id, ended.result, ended.outcome) == (running.call_id, "failed", "unknown")
    assert ended.fault == "cancelled"


async def test_crew_audit_and_every_example_of_its_page_work(
    before: Gateway, working: Crew, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    conversation_id = await working.open(autonomous=True)
    await working.send(conversation_id, tool("shell_run", command="echo one\n# \x1b[2J git push"))
    monkeypatch.setenv("MY_AGENT_ORCHESTRATOR_ADDRESS", working.environ["MY_AGENT_ORCHESTRATOR_LISTEN"])
    monkeypatch.setenv("MY_AGENT_SECRETS_DIR", str(working.folder / "secrets" / "cli"))
    monkeypatch.setenv("MY_AGENT_HOME", str(working.home))
    text = DOCUMENT.read_text("utf-8")
    lines = [shlex.split(line, comments=True)[1:] for line in re.findall(r"^\./crew audit.*$", text, re.M)]
    printed = []
    for words in lines:
        assert await asyncio.to_thread(main, words) == 0, words
        printed.append(capsys.readouterr().out)
    shown = dict(zip(map(tuple, lines), printed, strict=True))
    history = shown["audit", "--tool", "shell_run"]
    assert "shell_run  allowed: autonomous  done in " in history
    assert ", exit code 0, " in history
    assert "\n    echo one\n    # [U+001B][2J git push\n" in history
    assert json.loads(shown["audit", "--json"])["tool"] == "shell_run"
    assert "git push" in shown["audit", "--tool", "shell_run", "--text", "git push"]
    assert "Nothing was found" in shown["audit", "--agent", "default", "--day", "2026-03-15"]
    addresses = re.findall(r"'http://localhost:8765(/[^']*)'", text)
    assert len(addresses) == 4
    for address in addresses:
        assert (await before.http.get(address)).status_code == 200, address
