"""What tools do in figures: over days, for Prometheus, and one line of the log a call."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import grpc
import httpx
import pytest
import structlog
from crew.v1 import runs_pb2, stats_pb2, stats_pb2_grpc
from prometheus_client.parser import text_string_to_metric_families

from services.common.logging import configure
from tests.fixtures.crew import Crew, http_status_of, running_crew
from tests.fixtures.fake_orchestrator import FakeOrchestrator
from tests.fixtures.gateway import Gateway, gateway_before
from tests.fixtures.model_server import ModelServer, call, text
from tests.fixtures.postgres import ScratchDatabase
from tests.integration.audit.test_trail import tool

TRACE = "0af7651916cd43dd8448eb211c80319c"


async def several_calls(crew: Crew) -> None:
    """Good, failed, misspelt, refused and empty calls."""
    (crew.workspace / "empty").mkdir()
    conversation_id = await crew.open(autonomous=True)
    for words in (
        tool("workspace_write", path="a.txt", content="ab"),
        tool("workspace_read", path="a.txt"),
        tool("workspace_read", path="missing.txt"),
        tool("workspace_read", pfad="a.txt"),
        tool("workspace_read", path="a.txt", offset="x"),
        tool("workspce_read", path="a.txt"),
        tool("workspace_list", path="empty"),
        tool("shell_run", command="sleep 30", timeout_s=0.2),
    ):
        await crew.send(conversation_id, words)
    supervised = await crew.open()
    await crew.send(supervised, tool("workspace_write", path="b.txt", content="é"))
    await crew.decide(await crew.pending(supervised), approve=False)


@pytest.mark.spec("PIP-111")
async def test_figures_over_days_by_tool_and_agent(before: Gateway, working: Crew) -> None:
    await several_calls(working)
    body = (await before.http.get("/api/stats/tools")).json()
    assert body["days"] == 7
    uses = {(use["tool"], use["agent_id"]): use for use in body["uses"]}
    assert set(uses) == {
        (name, "default") for name in ("workspace_write", "workspace_read", "workspace_list", "shell_run")
    }
    read = uses["workspace_read", "default"]
    assert read["calls"] == 4
    assert {one["name"]: one["count"] for one in read["failures"]} == {"tool": 1, "arguments": 2}
    assert 0 <= read["p50_ms"] <= read["p95_ms"] <= read["max_ms"]
    write = uses["workspace_write", "default"]
    assert (write["calls"], write["refusals"], write["failures"]) == (2, 1, [])
    arguments = ['{"path":"a.txt","content":"ab"}', '{"path":"b.txt","content":"é"}']
    assert write["bytes_in"] == sum(len(text.encode()) for text in arguments)
    assert write["bytes_out"] > 0
    assert uses["shell_run", "default"]["failures"] == [{"name": "timeout", "count": 1}]
    assert uses["shell_run", "default"]["max_ms"] >= 200


@pytest.mark.spec("PIP-154")
async def test_what_points_to_a_poor_description_is_counted_and_sorted(
    before: Gateway, working: Crew
) -> None:
    await several_calls(working)
    body = (await before.http.get("/api/stats/tools?days=1")).json()
    first, *rest = body["descriptions"]
    assert first["tool"] == "workspace_read"
    named = {one["name"]: one["count"] for one in first["parameters"]}
    assert named == {"path": 1, "pfad": 1, "offset": 1}
    assert first["unknown_names"] == [{"name": "workspce_read", "count": 1}]
    assert first["total"] == 4
    assert [(one["tool"], one["absent"]) for one in rest] == [("workspace_list", 1)]


@pytest.mark.spec("PIP-154")
async def test_a_call_followed_at_once_by_another_tool_on_the_same_target_is_counted(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    environ = {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": model_server.base_url}
    async with running_crew(database, environ=environ) as crew:
        (crew.workspace / "a.txt").write_text("x")
        model_server.play(
            call("workspace_list", {"path": "a.txt"}),
            call("workspace_read", {"path": "a.txt"}),
            call("workspace_read", {"path": "a.txt"}),
            text("done"),
        )
        conversation_id = await crew.open(autonomous=True)
        await crew.send(conversation_id, "look")
        # The same target in another turn is no sequel.
        model_server.play(call("workspace_list", {"path": "a.txt"}), text("done"))
        await crew.send(conversation_id, "again")
        reply = await crew.stub(stats_pb2_grpc.StatsStub).Tools(stats_pb2.ToolStatsRequest())
    followed = {one.tool: {c.name: c.count for c in one.followed_by} for one in reply.descriptions}
    assert followed == {"workspace_list": {"workspace_read": 1}}


async def test_days_outside_the_range_are_refused(crew: Crew) -> None:
    for days in (0, 91, -1):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await crew.stub(stats_pb2_grpc.StatsStub).Tools(stats_pb2.ToolStatsRequest(days=days))
        assert http_status_of(refused.value) == (422, "BAD_DAYS")


def samples(text: str) -> dict[str, float]:
    """Series by name and labels, the process's own label left out."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = {name: value for name, value in sample.labels.items() if name != "orchestrator"}
            found[f"{sample.name}{json.dumps(labels, sort_keys=True)}"] = sample.value
    return found


def series(name: str, tool_name: str, **labels: str) -> str:
    return f"{name}{json.dumps({'tool': tool_name, 'agent': 'default', **labels}, sort_keys=True)}"


@pytest.mark.spec("PIP-111")
async def test_prometheus_reads_the_same_calls(before: Gateway, working: Crew) -> None:
    await several_calls(working)
    answer = await before.http.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = samples(answer.text)
    assert found[series("crew_tool_calls_total", "workspace_read")] == 4
    assert found[series("crew_tool_failures_total", "workspace_read", kind="arguments")] == 2
    assert found[series("crew_tool_failures_total", "shell_run", kind="timeout")] == 1
    assert found[series("crew_tool_refusals_total", "workspace_write", by="denied")] == 1
    # A name that a model made up is no label.
    assert found[series("crew_tool_failures_total", "unknown", kind="unknown_tool")] == 1
    assert "workspce" not in answer.text
    assert found[series("crew_tool_duration_seconds_count", "workspace_read")] == 2
    longest = found[series("crew_tool_recent_duration_seconds", "shell_run", quantile="1")]
    assert longest >= 0.2
    assert found[series("crew_tool_recent_duration_seconds", "shell_run", quantile="0.5")] == longest
    assert found[series("crew_tool_argument_bytes_total", "workspace_write")] > 0


@pytest.mark.spec("PIP-111")
async def test_metrics_ask_for_the_scope_read_where_a_login_is_asked(crew: Crew) -> None:
    address, secrets = crew.environ["MY_AGENT_ORCHESTRATOR_LISTEN"], crew.folder / "secrets"
    async with gateway_before(address, secrets, FakeOrchestrator()) as local:
        tokens = {}
        for scope in ("read", "chat"):
            made = await local.http.post("/api/auth/tokens", json={"name": scope, "scopes": [scope]})
            tokens[scope] = made.json()["token"]
    async with gateway_before(address, secrets, FakeOrchestrator(), auth="owner") as guarded:

        async def asked(scope: str | None) -> httpx.Response:
            headers = {"authorization": f"Bearer {tokens[scope]}"} if scope else {}
            return await guarded.http.get("/metrics", headers=headers)

        assert (await asked(None)).status_code == 401
        assert (await asked("chat")).status_code == 403
        assert (await asked("read")).status_code == 200


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """What all services of this process log."""
    stream = io.StringIO()
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    configure("crew", stream=stream)
    yield stream
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()


def read(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines() if line.startswith("{")]


@pytest.mark.spec("PIP-110")
async def test_a_call_is_one_line_and_one_span_in_each_service(lines: io.StringIO, crew: Crew) -> None:
    conversation_id = await crew.open(autonomous=True)
    await crew.send(conversation_id, tool("workspace_write", path="a.txt", content="not for the log"))
    for _ in range(15):
        await crew.send(conversation_id, tool("workspace_list", path="."))
    told = read(lines)
    orchestrator = [line for line in told if line["event"] == "tool_call"]
    host = {line["call_id"]: line for line in told if line["event"] == "call"}
    # More than ten a minute: a call is never held back as a repetition.
    assert len(orchestrator) == len({line["call_id"] for line in orchestrator}) == 16
    assert len(host) == 16
    write = orchestrator[0]
    runs = (await crew.runs.List(runs_pb2.RunsRequest(conversation_id=conversation_id))).runs
    expected = {
        "agent": "default",
        "conversation": conversation_id,
        "run": runs[-1].id,
        "tool": "workspace_write",
        "host": "tools",
        "verdict": "autonomous",
        "ok": True,
        "outcome": "done",
        "bytes_in": len(b'{"path":"a.txt","content":"not for the log"}'),
    }
    assert {name: write[name] for name in expected} == expected
    assert write["ms"] >= 0
    assert write["bytes_out"] > 0
    for line in orchestrator:
        there = host[line["call_id"]]
        assert there["trace_id"] == line["trace_id"]
        assert there["parent_span_id"] == line["span_id"]
        assert there["span_id"] != line["span_id"]
    assert "not for the log" not in lines.getvalue()


@pytest.mark.spec("PIP-110")
async def test_the_trace_of_an_http_request_reaches_the_host_and_the_trail(
    lines: io.StringIO, before: Gateway, working: Crew
) -> None:
    conversation_id = await working.open(autonomous=True)
    answer = await before.http.post(
        "/api/inbound",
        json={"text": tool("workspace_list", path="."), "conversation_id": conversation_id},
        headers={"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"},
    )
    assert answer.json()["status"] == "done"
    traces = [line["trace_id"] for line in read(lines) if line["event"] in ("tool_call", "call")]
    assert traces == [TRACE, TRACE]
    listed = await before.http.get("/api/audit?reads=true")
    assert [entry["trace_id"] for entry in listed.json()] == [TRACE]
