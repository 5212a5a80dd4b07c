"""The servicer over real gRPC: describing, judging, running, cancelling, doing once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from crew.v1 import toolhost_pb2 as pb

from services.common.toolhost import wire
from services.common.toolhost.contract import (
    Arguments,
    Ask,
    CallContext,
    NoOpinion,
    Refuse,
    Run,
    TextBlock,
    ToolError,
    ToolResult,
    ToolSpec,
    Verdict,
    text_result,
)
from services.common.toolhost.outlet import Outlet
from services.common.wording import Locale
from tests.contract.toolhost.serving import Caller, context_of, serving

Body = Callable[[Run], Coroutine[Any, Any, ToolResult]]


async def hello(run: Run) -> ToolResult:
    return text_result(f"hello {run.arguments.get('name', '')}", details={"n": 1})


@dataclass
class Probe:
    """A tool whose body each test gives."""

    name: str = "probe"
    effect: Any = "change"
    body: Body = hello
    opinion: Callable[[], Coroutine[Any, Any, Verdict]] | None = None
    work_only: bool = False
    deadline: int = 600
    ran: int = 0
    seen: list[Run] = field(default_factory=list)

    def spec(self, locale: Locale) -> ToolSpec:
        return ToolSpec(
            name=self.name,
            description={"en": "A probe.", "vi": "Một phép thử."}[locale],
            parameters={"type": "object"},
            label=self.name,
            kind="change",
            effect=self.effect,
            deadline_seconds=self.deadline,
        )

    def offered_to(self, mode: str, settings: Any) -> bool:
        return not self.work_only or mode == "work"

    def prepare(self, arguments: Arguments) -> Arguments:
        if "old_name" in arguments:
            return {"name": arguments["old_name"]}
        return arguments

    async def judge(self, context: CallContext, arguments: Arguments) -> Verdict:
        return await self.opinion() if self.opinion else NoOpinion()

    async def run(self, run: Run) -> ToolResult:
        self.ran += 1
        self.seen.append(run)
        return await self.body(run)


@pytest.fixture
def probe() -> Probe:
    return Probe()


@pytest.fixture
async def caller(tmp_path: Path, probe: Probe) -> AsyncIterator[Caller]:
    async with serving(tmp_path, [probe]) as caller:
        yield caller


async def test_describe_speaks_the_callers_language_and_offers_by_mode(tmp_path: Path) -> None:
    tools = [Probe("a"), Probe("b", work_only=True)]
    async with serving(tmp_path, tools) as caller:
        answers = {
            (mode, locale): await caller.stub.Describe(pb.DescribeRequest(mode=mode, locale=locale))
            for mode in ("assistant", "work")
            for locale in ("en", "vi")
        }
        again = await caller.stub.Describe(pb.DescribeRequest(mode="work", locale="vi"))
    assert [tool.name for tool in answers["assistant", "en"].tools] == ["a"]
    assert [tool.name for tool in answers["work", "vi"].tools] == ["a", "b"]
    assert answers["work", "vi"].tools[0].description == "Một phép thử."
    assert answers["work", "vi"].isolation == "os"
    assert len({answer.fingerprint for answer in answers.values()}) == 4
    assert again.fingerprint == answers["work", "vi"].fingerprint


@pytest.mark.spec("TLS-018", "TLS-019")
async def test_judgements_reach_the_caller(caller: Caller, probe: Probe) -> None:
    async def ask() -> Verdict:
        return Ask("it deletes", preview="p", target_state="s")

    assert await caller.judge(context_of(), "probe", {}) == NoOpinion()
    probe.opinion = ask
    assert await caller.judge(context_of(), "probe", {}) == Ask("it deletes", preview="p", target_state="s")


async def test_a_refusal_raised_while_judging_is_a_refusal(caller: Caller, probe: Probe) -> None:
    async def refuse() -> Verdict:
        raise ToolError("outside", refused=True)

    probe.opinion = refuse
    assert await caller.judge(context_of(), "probe", {}) == Refuse("outside")


@pytest.mark.spec("TLS-021")
async def test_a_judge_that_fails_is_an_error_for_the_caller_without_its_text(
    caller: Caller, probe: Probe
) -> None:
    async def broken() -> Verdict:
        raise RuntimeError("secret detail")

    probe.opinion = broken
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await caller.judge(context_of(), "probe", {})
    assert failed.value.code() == grpc.StatusCode.UNAVAILABLE
    assert "RuntimeError" in (failed.value.details() or "")
    assert "secret" not in (failed.value.details() or "")


async def test_a_judge_that_hangs_is_given_up(
    caller: Caller, probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang() -> Verdict:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr("services.common.toolhost.server.JUDGE_SECONDS", 0.05)
    probe.opinion = hang
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await caller.judge(context_of(), "probe", {})
    assert failed.value.code() == grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize("tool", ["nothing", "x" * 10_000, ""])
async def test_unknown_tools_are_named_as_such(caller: Caller, tool: str) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await caller.run(context_of(), tool, {})
    assert failed.value.code() == grpc.StatusCode.NOT_FOUND


async def test_nonsense_is_refused_before_anything_runs(caller: Caller, probe: Probe) -> None:
    for message in (
        pb.RunInput(),
        pb.RunInput(cancel=pb.RunCancel()),
        pb.RunInput(start=pb.RunStart(tool="probe", arguments_json="[1]")),
        pb.RunInput(start=pb.RunStart(tool="probe", arguments_json="{}")),  # no call id
    ):
        call = caller.stub.Run(iter([message]), timeout=30)
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await caller.finish(call)
        assert failed.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert probe.ran == 0


@pytest.mark.spec("PIP-014", "PIP-122")
async def test_prepare_converts_for_the_caller_and_for_the_run(caller: Caller, probe: Probe) -> None:
    asked = pb.PrepareRequest(tool="probe", arguments_json='{"old_name":"An"}')
    assert (await caller.stub.Prepare(asked)).arguments_json == '{"name":"An"}'
    same = pb.PrepareRequest(tool="probe", arguments_json='{ "n": 1.10 }')
    assert (await caller.stub.Prepare(same)).arguments_json == '{ "n": 1.10 }'
    assert (await caller.run(context_of(), "probe", {"old_name": "An"})).text == "hello An"


@pytest.mark.spec("PIP-040", "PIP-126")
@pytest.mark.parametrize("fails", [False, True])
async def test_accepted_progress_precedes_the_result_and_later_progress_is_dropped(
    caller: Caller, probe: Probe, fails: bool
) -> None:
    late: list[asyncio.Task[None]] = []

    async def body(run: Run) -> ToolResult:
        for n in range(40):
            await run.progress(f"step {n}", {"n": n})

        async def afterwards() -> None:
            await asyncio.sleep(0.2)
            await run.progress("too late")

        late.append(asyncio.create_task(afterwards()))
        if fails:
            raise ValueError("broken")
        return text_result("done")

    probe.body = body
    call = await caller.open(context_of(), "probe", {})
    answer = await caller.finish(call)
    assert [p.text for p in answer.progress] == [f"step {n}" for n in range(40)]
    assert answer.progress[3].details_json == '{"n":3}'
    assert answer.result.is_error is fails
    await late[0]
    with pytest.raises(StopAsyncIteration):
        await anext(aiter(call))


@pytest.mark.spec("PIP-129")
async def test_progress_waits_for_a_slow_reader_and_outlives_a_lost_one() -> None:
    written: list[str] = []
    gate = asyncio.Event()

    async def write(message: pb.RunOutput) -> None:
        await gate.wait()
        written.append(message.progress.text)
        if len(written) == 2:
            raise ConnectionError("gone")

    outlet = Outlet(write)
    first = asyncio.create_task(outlet.progress("1"))
    second = asyncio.create_task(outlet.progress("2"))
    await asyncio.sleep(0.05)
    assert not first.done()
    gate.set()
    await asyncio.gather(first, second)
    await outlet.progress("3")
    await outlet.settle()
    assert written == ["1", "2"]


@pytest.mark.spec("TLS-022", "PIP-041")
async def test_cancelling_the_rpc_ends_the_work_before_the_call_is_over(caller: Caller, probe: Probe) -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def body(run: Run) -> ToolResult:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.05)
            ended.set()
        raise AssertionError

    probe.body = body
    call = await caller.open(context_of(), "probe", {})
    reading = asyncio.create_task(caller.finish(call))
    await began.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await asyncio.wait_for(ended.wait(), 10)


@pytest.mark.spec("PIP-044")
async def test_a_passed_rpc_deadline_ends_the_work(caller: Caller, probe: Probe) -> None:
    ended = asyncio.Event()

    async def body(run: Run) -> ToolResult:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    probe.body = body
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await caller.run(context_of(), "probe", {}, timeout=0.5)
    assert failed.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    await asyncio.wait_for(ended.wait(), 10)


@pytest.mark.spec("PIP-044")
async def test_the_tools_own_deadline_is_a_timeout_result(tmp_path: Path) -> None:
    async def body(run: Run) -> ToolResult:
        await asyncio.Event().wait()
        raise AssertionError

    async with serving(
        tmp_path, [Probe(body=body, deadline=1), Probe("reader", "read", body, deadline=1)]
    ) as c:
        changed, read = await asyncio.gather(
            c.run(context_of(call_id="a"), "probe", {}), c.run(context_of(call_id="b"), "reader", {})
        )
    assert (changed.is_error, changed.outcome) == (True, "unknown")
    assert (read.is_error, read.outcome) == (True, "not_started")
    assert "1 s" in changed.text


@pytest.mark.spec("PIP-041", "PIP-136")
async def test_asking_for_the_end_still_gives_what_was_captured(caller: Caller, probe: Probe) -> None:
    began = asyncio.Event()

    async def body(run: Run) -> ToolResult:
        await run.progress("half of it")
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return text_result("half of it\ncancelled", is_error=True, outcome="unknown")
        raise AssertionError

    probe.body = body
    call = await caller.open(context_of(), "probe", {})
    reading = asyncio.create_task(caller.finish(call))
    await began.wait()
    await call.write(pb.RunInput(cancel=pb.RunCancel()))
    answer = await reading
    assert answer.result.text == "half of it\ncancelled"


@pytest.mark.spec("PIP-136")
@pytest.mark.parametrize(("effect", "outcome"), [("read", "not_started"), ("change", "unknown")])
async def test_a_tool_with_nothing_to_say_of_its_cancellation(
    tmp_path: Path, effect: str, outcome: str
) -> None:
    began = asyncio.Event()

    async def body(run: Run) -> ToolResult:
        began.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with serving(tmp_path, [Probe(effect=effect, body=body)]) as caller:
        call = await caller.open(context_of(locale="vi"), "probe", {})
        reading = asyncio.create_task(caller.finish(call))
        await began.wait()
        await call.write(pb.RunInput(cancel=pb.RunCancel()))
        result = (await reading).result
    assert (result.is_error, result.outcome) == (True, outcome)
    assert "probe" in result.text
    assert "hủy" in result.text


@pytest.mark.spec("PIP-050", "TLS-027")
async def test_a_fault_the_tool_explains_is_an_error_result(caller: Caller, probe: Probe) -> None:
    async def body(run: Run) -> ToolResult:
        raise ToolError("Offset 200 is beyond the end.", details={"lines": 100}, refused=True)

    probe.body = body
    result = await caller.run(context_of(), "probe", {})
    assert result == text_result(
        "Offset 200 is beyond the end.",
        details={"lines": 100},
        is_error=True,
        refused=True,
        outcome="not_started",
    )


@pytest.mark.spec("TLS-028", "PIP-051")
async def test_an_unexpected_fault_gives_its_type_and_keeps_its_text(
    caller: Caller, probe: Probe, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    async def body(run: Run) -> ToolResult:
        raise ZeroDivisionError("token=abc123")

    probe.body = body
    with caplog.at_level(logging.INFO):
        result = await caller.run(context_of(call_id="call-77"), "probe", {})
    assert result.is_error
    assert "ZeroDivisionError" in result.text
    assert "call-77" in result.text
    assert "abc123" not in result.text
    logged = caplog.text + capsys.readouterr().out
    assert "call-77" in logged
    assert "Traceback" in logged


@pytest.mark.spec("PIP-090")
async def test_the_same_key_acts_once_also_over_a_new_connection(tmp_path: Path, probe: Probe) -> None:
    async with serving(tmp_path, [probe]) as caller:
        first = await caller.run(context_of(), "probe", {"name": "An"})
        again = await caller.run(context_of(run_id="r2"), "probe", {"name": "An"})
    async with serving(tmp_path, [probe]) as caller:
        restarted = await caller.run(context_of(), "probe", {"name": "An"})
    assert first == again == restarted
    assert probe.ran == 1


@pytest.mark.spec("PIP-090")
async def test_the_same_key_twice_at_once_acts_once(caller: Caller, probe: Probe) -> None:
    gate = asyncio.Event()

    async def body(run: Run) -> ToolResult:
        await gate.wait()
        return text_result("acted")

    probe.body = body
    both = [asyncio.create_task(caller.run(context_of(), "probe", {})) for _ in range(2)]
    while not probe.ran:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    gate.set()
    assert [result.text for result in await asyncio.gather(*both)] == ["acted", "acted"]
    assert probe.ran == 1


@pytest.mark.spec("PIP-090")
async def test_reading_tools_run_again(tmp_path: Path) -> None:
    reader = Probe(effect="read")
    async with serving(tmp_path, [reader]) as caller:
        await caller.run(context_of(), "probe", {})
        await caller.run(context_of(), "probe", {})
    assert reader.ran == 2


async def test_one_key_for_two_things_is_refused(caller: Caller, probe: Probe) -> None:
    await caller.run(context_of(), "probe", {"name": "An"})
    other = await caller.run(context_of(), "probe", {"name": "Bình"})
    assert (other.is_error, other.outcome) == (True, "not_started")
    assert probe.ran == 1


async def test_a_call_that_did_not_start_may_be_sent_again(caller: Caller, probe: Probe) -> None:
    async def refuse(run: Run) -> ToolResult:
        raise ToolError("busy")

    probe.body = refuse
    assert (await caller.run(context_of(), "probe", {})).is_error
    probe.body = hello
    assert (await caller.run(context_of(), "probe", {})).text == "hello "


async def test_a_cancelled_call_is_not_run_again_under_its_key(caller: Caller, probe: Probe) -> None:
    began = asyncio.Event()

    async def body(run: Run) -> ToolResult:
        began.set()
        await asyncio.Event().wait()
        raise AssertionError

    probe.body = body
    call = await caller.open(context_of(), "probe", {})
    reading = asyncio.create_task(caller.finish(call))
    await began.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    again = await caller.run(context_of(), "probe", {})
    assert (again.is_error, again.outcome) == (True, "unknown")
    assert probe.ran == 1


async def test_without_a_record_of_calls_nothing_that_changes_runs(tmp_path: Path, probe: Probe) -> None:
    (tmp_path / "state").write_text("a file where the folder should be")
    async with serving(tmp_path, [probe]) as caller:
        result = await caller.run(context_of(), "probe", {})
    assert (result.is_error, result.outcome) == (True, "not_started")
    assert probe.ran == 0


async def test_a_large_result_arrives_whole(caller: Caller, probe: Probe) -> None:
    long = "x" * (20 * 1024**2)

    async def body(run: Run) -> ToolResult:
        return ToolResult(content=(TextBlock(long), TextBlock("end")))

    probe.body = body
    result = await caller.run(context_of(), "probe", {})
    assert result.content == (TextBlock(long), TextBlock("end"))


async def test_a_result_no_message_can_carry_is_an_error_and_the_host_lives(
    caller: Caller, probe: Probe
) -> None:
    async def body(run: Run) -> ToolResult:
        return ToolResult(details={"x": "y" * (wire.DETAILS_BYTES + 1)})

    probe.body = body
    result = await caller.run(context_of(), "probe", {})
    assert result.is_error
    probe.body = hello
    assert not (await caller.run(context_of(call_id="k2"), "probe", {})).is_error


@pytest.mark.spec("PIP-004")
async def test_each_call_gets_its_own_context(caller: Caller, probe: Probe) -> None:
    first = context_of(call_id="a", agent_id="coach", budget_left_usd=0.5, settings={"x": 1})
    second = replace(first, call_id="b", agent_id="scout", budget_left_usd=None)
    await caller.run(first, "probe", {})
    await caller.run(second, "probe", {})
    assert [run.context for run in probe.seen] == [first, second]


async def test_release_is_told_to_those_who_keep_something(tmp_path: Path) -> None:
    told: list[tuple[str, str]] = []

    async def hook(kind: str, name: str) -> None:
        told.append((kind, name))

    async with serving(tmp_path, [Probe()], on_release=[hook]) as caller:
        await caller.stub.Release(pb.ReleaseRequest(kind=pb.RELEASE_KIND_CONVERSATION, id="c1"))
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await caller.stub.Release(pb.ReleaseRequest(id="c1"))
    assert failed.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert told == [("conversation", "c1")]
