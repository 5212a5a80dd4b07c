"""The acceptance cases at the end of pipeline.md about what calls do and what comes back, by number."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from services.common.rpc.probe import serves
from services.common.toolhost.contract import Run, ToolResult, text_result
from services.tools.workspace.workspace_read import WorkspaceRead
from tests.fixtures.added_host import added_host
from tests.fixtures.crew import Crew, names_of, running_crew
from tests.fixtures.model_server import ModelServer, call, text
from tests.fixtures.postgres import ScratchDatabase
from tests.integration.acceptance.test_pipeline_cases import (
    ROUTES,
    calls,
    crew,
    crew_of,
    one,
    results,
    told,
)
from tests.unit.orchestrator.calls.parts import Scripted

__all__ = ["crew"]


@pytest.mark.spec("PIP-030", "PIP-031", "PIP-132")
async def test_case_5_slow_reads_of_one_message_run_together_and_are_stored_as_written(
    crew: Crew, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, together, turns = WorkspaceRead.run, asyncio.Barrier(3), asyncio.Condition()
    ended: list[str] = []

    async def slowly(tool: WorkspaceRead, run: Run) -> ToolResult:
        """Reads when all three are there, the last one first."""
        name = str(run.arguments["path"])
        await together.wait()
        async with turns:
            await turns.wait_for(lambda: len(ended) == 3 - int(name))
        try:
            return await read(tool, run)
        finally:
            async with turns:
                ended.append(name)
                turns.notify_all()

    monkeypatch.setattr(WorkspaceRead, "run", slowly)
    for name in "123":
        (crew.workspace / name).write_text(f"content {name}")
    model_server.play(calls(*[("workspace_read", {"path": name}) for name in "123"]), text("Done."))
    events = await crew.send(await crew.open(), "go")
    assert [result.ok for result in results(events)] == [True] * 3
    assert ended == ["3", "2", "1"]
    for name, stored in zip("123", told(model_server), strict=True):
        assert f"content {name}" in stored


@pytest.mark.spec("PIP-092")
async def test_case_13_what_was_altered_after_it_was_shown_does_not_run(
    crew: Crew, model_server: ModelServer
) -> None:
    model_server.play(call("shell_run", {"command": "touch shown"}), text("Done."))
    conversation_id = await crew.open(autonomous=False)
    await crew.send(conversation_id, "go")
    with psycopg.connect(crew.database.superuser_url) as connection:
        altered = connection.execute(
            "update messages set tool_calls = replace(tool_calls::text, 'shown', 'other')::json"
            " where tool_calls::text like '%%shown%%'"
        )
        assert altered.rowcount == 1
    events = await crew.decide(await crew.pending(conversation_id), approve=True)
    (refused,) = results(events)
    assert not refused.ok
    assert "differ" in refused.output
    assert events[-1].done.text == "Done."
    assert not list(crew.workspace.glob("*"))


@pytest.mark.spec("PIP-122")
async def test_case_18_an_older_shape_that_was_stored_runs_after_a_restart(
    crew: Crew, model_server: ModelServer
) -> None:
    file = crew.workspace / "a.txt"
    file.write_text("one one")
    older = {"path": "a.txt", "old": "one one", "new": "one two"}
    model_server.play(call("workspace_edit", older), text("Done."))
    conversation_id = await crew.open(autonomous=False)
    await crew.send(conversation_id, "go")
    assert file.read_text() == "one one"
    await crew.end("orchestrator")
    await crew.start("orchestrator")
    (result,) = results(await crew.decide(await crew.pending(conversation_id), approve=True))
    assert result.ok, result.output
    assert file.read_text() == "one two"


@pytest.mark.spec("PIP-034", "PIP-133")
@pytest.mark.parametrize("votes", [(True, True, False), (True, True, True)])
async def test_case_20_a_batch_ends_the_turn_when_all_of_it_says_so(
    database: ScratchDatabase, model_server: ModelServer, votes: tuple[bool, ...]
) -> None:
    async def end(run: Run) -> ToolResult:
        return text_result("ended", terminate=True)

    async def go_on(run: Run) -> ToolResult:
        return text_result("going on")

    tools = [Scripted("end_it", end, parallel=True), Scripted("go_on", go_on, parallel=True)]
    environ = {ROUTES: "openai:main", "OPENAI_BASE_URL": model_server.base_url}
    async with (
        added_host(tools) as config,
        running_crew(database, config=config, environ=environ) as crew,
    ):
        conversation_id = await crew.open(autonomous=True)
        wanted = [("end_it" if vote else "go_on", {}) for vote in votes]
        model_server.play(calls(*wanted), text("Asked again."))
        events = await crew.send(conversation_id, "go")
        assert [result.ok for result in results(events)] == [True] * 3
        assert names_of(events)[-1] == "done"
        asked_again = not all(votes)
        assert len(model_server.requests) == 1 + asked_again
        assert events[-1].done.text == ("Asked again." if asked_again else "")


@pytest.mark.spec("PIP-070", "PIP-072")
async def test_case_26_quotes_and_arguments_arrive_as_they_were_written(
    crew: Crew, model_server: ModelServer
) -> None:
    file = crew.workspace / "a.txt"
    file.write_text('\u201ccurly\u201d and "curly"\u00a0end')
    conversation_id = await crew.open(autonomous=True)
    edit = {"path": "a.txt", "old": "\u201ccurly\u201d", "new": "\u201cnew\u201d"}
    model_server.play(call("workspace_read", {"path": "a.txt"}), call("workspace_edit", {"edits": [edit]}))
    model_server.play(text("Done."))
    await crew.send(conversation_id, "go")
    assert "\u201ccurly\u201d" in told(model_server)[0]
    assert file.read_bytes() == '\u201cnew\u201d and "curly"\u00a0end'.encode()
    git = crew.workspace / "git"
    git.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > arguments\n')
    git.chmod(0o755)
    result = await one(crew, model_server, "shell_run", {"command": "PATH=.:$PATH git commit -m x"})
    assert result.ok, result.output
    assert (crew.workspace / "arguments").read_text().splitlines() == ["commit", "-m", "x"]


@pytest.mark.spec("PIP-141", "PIP-081")
async def test_case_27_a_long_output_keeps_fifty_lines_of_each_end(
    crew: Crew, model_server: ModelServer
) -> None:
    result = await one(crew, model_server, "shell_run", {"command": "seq -f 'line %g' 5000"})
    assert result.shortened == "cut"
    assert result.original_chars > 40_000
    (cut,) = told(model_server)
    kept = [line for line in cut.splitlines() if line.startswith("line ")]
    assert kept == [f"line {n}" for n in (*range(1, 51), *range(4951, 5001))]
    assert "4900 lines left out" in cut


# Each bounded by itself, so that nothing is exhausted when the guard fails.
GROWS = """[ "$1" -gt 0 ] || exec sleep 30
sh grow.sh $(($1 - 1)) & sh grow.sh $(($1 - 1)) & wait
"""
LIMITS = "shell_limits: {processes: 12, file_bytes: 1048576, cpu_seconds: 1}\n"


@pytest.mark.spec("PIP-160")
async def test_case_35_a_limit_ends_the_command_and_never_the_service(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    async with crew_of(database, model_server, "mode: work\n" + LIMITS) as crew:
        (crew.workspace / "grow.sh").write_text(GROWS)
        answers: list[str] = []

        async def ask() -> None:
            while True:
                answers.append(await asyncio.to_thread(serves, crew.environ["MY_AGENT_TOOLS_ADDRESS"], 30))
                await asyncio.sleep(0.1)

        asking = asyncio.create_task(ask())
        try:
            for command, limit in (
                ("sh grow.sh 6", "the limit of 12 processes"),
                ("head -c 20000000 /dev/zero > big", "the limit of 1 MB for one file"),
                ("timeout 30 sh -c 'while :; do :; done'", "the limit of 1 seconds of processor time"),
            ):
                asked = len(answers)
                result = await one(crew, model_server, "shell_run", {"command": command})
                assert not result.ok
                assert limit in result.output
                assert len(answers) > asked
        finally:
            asking.cancel()
        assert set(answers) == {""}
        assert (await one(crew, model_server, "shell_run", {"command": "echo on"})).ok
