"""What a call is given belongs to that call (PIP-118)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from services.common.toolhost.contract import Run, ToolResult, WorkspaceGrant, text_result
from services.common.toolhost.nested import NestedCall, NestedReport
from services.orchestrator.calls.admission import Admitted
from services.orchestrator.calls.contract import NoSuchCall
from services.orchestrator.calls.inner import InnerCalls
from services.orchestrator.calls.pipeline import CallPipeline
from tests.unit.orchestrator.calls.parts import Bench, Scripted, agent_in, call


@pytest.mark.spec("PIP-118")
async def test_what_a_call_was_given_is_refused_after_its_end_and_by_the_next_call(
    tmp_path: Path,
) -> None:
    kept: list[NestedReport] = []
    paid = NestedCall("look", {}, ok=True, output="", ms=1, cost_usd=1.0, metered=True)

    async def keeps(one: Run) -> ToolResult:
        await one.nested(paid)
        kept.append(one.nested)
        return text_result("kept")

    async def reuses(one: Run) -> ToolResult:
        await kept[0](paid)
        return text_result("reused")

    async def hangs(one: Run) -> ToolResult:
        kept.append(one.nested)
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    tools = [Scripted("keeps", keeps), Scripted("reuses", reuses), Scripted("hangs", hangs)]
    bench = Bench(agent_in(tmp_path / "home"), tools)
    await bench.run(call("1", "keeps"), call("2", "reuses"))
    assert not bench.sink.outcomes["2"].ok
    assert "NoSuchCall" in bench.sink.outcomes["2"].text
    stopped = asyncio.create_task(bench.run(call("3", "hangs")))
    async with asyncio.timeout(30):
        while len(kept) < 2:
            await asyncio.sleep(0.01)
    stopped.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopped
    for handle in kept:
        with pytest.raises(NoSuchCall):
            await handle(paid)
    # What was told in time is all that anybody was told.
    assert bench.sink.of("nested 0") == ["1"]
    assert len(bench.sink.nested_calls) == 1


@pytest.mark.spec("PIP-118")
async def test_no_use_of_a_call_that_ended_is_answered(tmp_path: Path) -> None:
    agent = agent_in(tmp_path / "home")
    pipeline = CallPipeline(grant_for=lambda agent: WorkspaceGrant(root=str(agent.workspace)))
    kept: list[InnerCalls] = []
    admitted: list[Admitted] = []
    look = Scripted("look")

    async def keeps(one: Run) -> ToolResult:
        inner = pipeline.inner.of(one.context.call_id)
        (admission,) = await inner.admit([call("inner", "look")])
        assert isinstance(admission, Admitted)
        kept.append(inner)
        admitted.append(admission)
        return text_result("kept")

    async def reuses(one: Run) -> ToolResult:
        await kept[0].run(admitted[0], asyncio.Event())
        return text_result("reused")

    bench = Bench(agent, [Scripted("keeps", keeps), Scripted("reuses", reuses), look])
    await pipeline.run(bench.scope(), [call("1", "keeps"), call("2", "reuses")], bench.sink)
    assert bench.sink.outcomes["1"].ok
    assert not bench.sink.outcomes["2"].ok
    with pytest.raises(NoSuchCall):
        pipeline.inner.of("1")
    (inner,), stop = kept, asyncio.Event()
    for property_name in ("agent", "toolbox", "budget"):
        with pytest.raises(NoSuchCall):
            getattr(inner, property_name)
    for use in (
        inner.conversation,
        lambda: inner.admit([call("late", "look")]),
        lambda: inner.judge_again(admitted[0]),
        lambda: inner.begin(admitted),
        lambda: inner.withheld(bench.sink.outcomes["1"]),
        lambda: inner.run(admitted[0], stop),
    ):
        with pytest.raises(NoSuchCall):
            await use()
    assert look.ran == []
