"""Calls through all stages with real tools in process."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from services.common.toolhost.contract import (
    Ask,
    NoOpinion,
    Refuse,
    Routine,
    Run,
    ToolError,
    ToolResult,
    text_result,
)
from services.orchestrator.calls.arguments import digest
from services.orchestrator.calls.contract import Completed, Paused, UnknownOutcome
from services.orchestrator.calls.hooks import BeforeCall, Blocked, Changed, Hooks, Patch
from services.orchestrator.calls.masking import SecretMask
from tests.unit.orchestrator.calls.parts import Bench, Gate, Scripted, agent_in, approval, call, conversation


@pytest.fixture
def agent(tmp_path: Path):
    return agent_in(tmp_path / "home")


async def _says(text: str) -> ToolResult:
    return text_result(text)


@pytest.mark.spec("PIP-010", "PIP-032", "PIP-132", "TRN-133")
async def test_one_by_one_each_call_lives_its_whole_life_before_the_next(agent):
    bench = Bench(agent, [Scripted("look", parallel=True), Scripted("write")])
    end = await bench.run(call("1", "look"), call("2", "write"), call("3", "look"))
    assert isinstance(end, Completed)
    lives = ["announced", "starting", "ended", "stored"]
    assert bench.sink.events == [(stage, one) for one in "123" for stage in lives]


@pytest.mark.spec("PIP-030", "PIP-031", "TRN-136", "TLS-010")
async def test_overlapping_calls_run_together_and_are_stored_in_written_order(agent):
    gate = Gate()
    bench = Bench(agent, [Scripted("look", gate, parallel=True)])
    running = asyncio.create_task(bench.run(*(call(str(n), "look") for n in range(3))))
    await gate.wait_for(3)
    gate.go.set()
    await running
    assert bench.sink.of("stored") == ["0", "1", "2"]
    last_announced = max(i for i, (kind, _) in enumerate(bench.sink.events) if kind == "announced")
    assert last_announced < bench.sink.events.index(("starting", "0"))


@pytest.mark.spec("PIP-031", "TRN-134")
async def test_at_most_eight_effects_at_once(agent):
    gate = Gate()
    bench = Bench(agent, [Scripted("look", gate, parallel=True)])
    running = asyncio.create_task(bench.run(*(call(str(n), "look") for n in range(12))))
    await gate.wait_for(8)
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(gate.begun) == 8
    gate.go.set()
    await running
    assert len(gate.begun) == 12


@pytest.mark.spec("PIP-131")
async def test_sequential_makes_every_batch_run_one_by_one(tmp_path):
    gate = Gate()
    gate.go.set()
    bench = Bench(
        agent_in(tmp_path / "home", tool_execution="sequential"), [Scripted("look", gate, parallel=True)]
    )
    await bench.run(call("1", "look"), call("2", "look"))
    assert bench.sink.events.index(("stored", "1")) < bench.sink.events.index(("announced", "2"))


@pytest.mark.spec("PIP-130", "PIP-133", "TLS-030")
async def test_a_call_that_fails_its_checks_ends_before_later_effects_start(agent):
    bench = Bench(agent, [Scripted("look", parallel=True)])
    end = await bench.run(call("1", "lok"), call("2", "look"), call("3", "look"))
    events = bench.sink.events
    assert events.index(("ended", "1")) < events.index(("starting", "2"))
    assert bench.sink.of("stored") == ["1", "2", "3"]
    assert "`look`" in bench.sink.outcomes["1"].text
    assert not end.terminate


@pytest.mark.spec("PIP-034", "PIP-133")
@pytest.mark.parametrize(("votes", "ends"), [((True, True), True), ((True, False), False)])
async def test_a_batch_ends_the_turn_only_when_all_vote_for_it(agent, votes, ends):
    tools = [Scripted(f"t{i}", lambda _, v=vote: _done(v)) for i, vote in enumerate(votes)]
    end = await Bench(agent, tools).run(*(call(str(i), f"t{i}") for i in range(2)))
    assert end.terminate is ends


async def _done(terminate: bool) -> ToolResult:
    return text_result("x", terminate=terminate)


@pytest.mark.spec("PIP-013", "TLS-032", "TRN-194")
async def test_calls_of_a_cut_off_reply_never_run_and_never_ask(agent):
    tool = Scripted("write", requires_approval=True)
    bench = Bench(agent, [tool])
    end = await bench.run(call("1", "write", cut_off=True), call("2", "write", broken="It broke at 5."))
    assert isinstance(end, Completed)
    assert tool.ran == []
    assert "smaller" in bench.sink.outcomes["1"].text
    assert "It broke at 5." in bench.sink.outcomes["2"].text


@pytest.mark.spec("PIP-011", "PIP-016", "TLS-025", "TLS-081", "TRN-125")
async def test_bad_arguments_go_back_named_and_nothing_runs(agent):
    tool = Scripted(
        "read",
        parameters={
            "type": "object",
            "properties": {"path": {"type": "string"}, "offset": {"type": "integer"}},
            "required": ["path"],
        },
    )
    bench = Bench(agent, [tool])
    await bench.run(call("1", "read", '{"offset": 20}'))
    outcome = bench.sink.outcomes["1"]
    assert outcome.text.splitlines() == [
        'Tool error: Invalid arguments for "read":',
        "- path: required",
        'Received: {"offset":20}',
        "Call it as: read(path: string, offset?: integer)",
    ]
    assert outcome.verdict == "failed"
    assert not tool.ran


@pytest.mark.spec("TRN-196", "TRN-197", "TRN-198", "TLS-046")
async def test_a_call_that_asks_pauses_after_the_earlier_ones_ran(agent):
    ask = Scripted("write", requires_approval=True, card="Write {text}")
    look = Scripted("look")
    bench = Bench(agent, [ask, look])
    end = await bench.run(call("1", "look"), call("2", "write", '{"text":"a\\u202eb"}'), call("3", "look"))
    assert isinstance(end, Paused)
    assert end.call.id == "2"
    assert end.ask.summary == "Write a[U+202E]b"
    assert end.ask.may_always
    assert end.ask.arguments_sha256 == digest(end.ask.arguments_json)
    assert bench.sink.of("stored") == ["1"]
    assert bench.sink.of("announced") == ["1", "2"]
    assert ask.ran == []


@pytest.mark.spec("TRN-197")
async def test_an_overlapping_batch_is_cut_at_the_call_that_asks(agent):
    verdicts = iter([NoOpinion(), Ask("why"), NoOpinion()])

    async def judge():
        return next(verdicts)

    bench = Bench(agent, [Scripted("look", parallel=True, judge=judge)])
    end = await bench.run(call("1", "look"), call("2", "look"), call("3", "look"))
    assert isinstance(end, Paused)
    assert (end.call.id, end.ask.reason, end.ask.may_always) == ("2", "why", False)
    assert bench.sink.of("stored") == ["1"]


@pytest.mark.spec("TRN-200", "PIP-092", "PIP-091", "FLD-022")
async def test_what_was_approved_runs_with_its_token_and_the_state_it_was_asked_in(agent):
    tool = Scripted("write", requires_approval=True)
    bench = Bench(agent, [tool])
    one = call("1", "write", '{ "text" : "x", "count": "3" }')
    decision = approval(one, "approved", '{"text":"x","count":3}', token="tok", target_state="sha")
    await bench.run(one, decisions={"1": decision})
    assert (tool.ran[0].token, tool.ran[0].target_state) == ("tok", "sha")
    assert bench.sink.allowed["1"] == ('{"text":"x","count":3}', "approved", "owner")


@pytest.mark.spec("PIP-092", "TRN-132")
@pytest.mark.parametrize(
    "changes",
    [{"text": '{"text":"y"}'}, {"tool": "other"}, {"kind": "question"}, {"arguments": '{"text":"z"}'}],
)
async def test_a_call_that_differs_from_what_was_approved_is_refused(agent, changes):
    tool = Scripted("write", requires_approval=True)
    bench = Bench(agent, [tool])
    one = call("1", "write", changes.pop("text", '{"text":"x"}'))
    decision = replace(approval(one, "approved", '{"text":"x"}'), **changes)
    await bench.run(one, decisions={"1": decision})
    assert tool.ran == []
    assert "differ" in bench.sink.outcomes["1"].text
    assert bench.sink.outcomes["1"].verdict == "refused"


@pytest.mark.spec("TRN-205", "TRN-212", "TLS-049")
@pytest.mark.parametrize("status", ["denied", "expired"])
async def test_a_refused_call_does_not_run_and_says_not_to_go_round(agent, status):
    tool = Scripted("write", requires_approval=True)
    bench = Bench(agent, [tool])
    one = call("1", "write", '{"text":"x"}')
    end = await bench.run(
        one,
        call("2", "progress_note", '{"text":"on"}'),
        decisions={"1": approval(one, status, '{"text":"x"}')},
    )
    assert isinstance(end, Completed)
    outcome = bench.sink.outcomes["1"]
    assert "nothing changed" in outcome.text
    assert "another tool" in outcome.text
    assert (outcome.verdict, outcome.ok) == (status, False)
    assert tool.ran == []


@pytest.mark.spec("TRN-221", "TRN-224", "TRN-225", "TRN-226", "TRN-185")
async def test_a_question_asks_even_when_autonomous_and_its_answer_is_the_result(agent):
    bench = Bench(agent, [])
    one = call("1", "ask_user", '{"question":"Which?","options":["a","b"],"default":"b"}')
    end = await bench.run(one, conversation=conversation(autonomous=True))
    assert isinstance(end, Paused)
    assert (end.ask.kind, end.ask.options, end.ask.default_answer) == ("question", ("a", "b"), "b")
    assert not end.ask.may_always
    for status, fields, part, ok in (
        ("answered", {"answer": "a"}, "a", True),
        ("expired", {"default_answer": "b"}, "decided this yourself", True),
        ("expired", {}, "no default", False),
    ):
        bench = Bench(agent, [])
        await bench.run(one, decisions={"1": approval(one, status, "{}", kind="question", **fields)})
        assert part in bench.sink.outcomes["1"].text
        assert bench.sink.outcomes["1"].ok is ok
        assert bench.sink.outcomes["1"].step_kind == "question"


@pytest.mark.spec("TRN-191", "TLS-021")
@pytest.mark.parametrize("failure", ["raises", "hangs"])
async def test_a_judge_that_fails_makes_a_person_be_asked(agent, failure, monkeypatch):
    monkeypatch.setattr("services.orchestrator.hosts.local.JUDGE_SECONDS", 0.05)

    async def judge():
        if failure == "hangs":
            await asyncio.Event().wait()
        raise RuntimeError("nonsense")

    tool = Scripted("look", judge=judge)
    end = await Bench(agent, [tool]).run(call("1", "look"), conversation=conversation(autonomous=True))
    assert isinstance(end, Paused)
    assert (end.ask.reason, end.ask.may_always) == ("", False)
    assert tool.ran == []


@pytest.mark.spec("TLS-020", "TRN-193", "TLS-048")
async def test_a_hard_refusal_goes_straight_back(agent):
    async def judge():
        return Refuse("outside the workspace", rule="containment")

    tool = Scripted("write", judge=judge, requires_approval=True)
    bench = Bench(agent, [tool])
    end = await bench.run(call("1", "write"))
    assert isinstance(end, Completed)
    outcome = bench.sink.outcomes["1"]
    assert (outcome.verdict, outcome.reason) == ("refused", "containment")
    assert "outside the workspace" in outcome.text
    assert tool.ran == []


@pytest.mark.spec("FLD-084")
async def test_a_writing_call_whose_twin_ended_unknown_asks_even_when_autonomous(agent):
    async def routine():
        return Routine()

    arguments = '{"text":"x"}'
    earlier = [UnknownOutcome("send", digest(arguments)), UnknownOutcome("look", digest(arguments))]
    bench = Bench(agent, [Scripted("send", effect="change", judge=routine), Scripted("look")])
    free = {"conversation": conversation(autonomous=True), "unknown_outcomes": earlier}
    end = await bench.run(call("1", "send", arguments), **free)
    assert isinstance(end, Paused)
    assert "may already have taken effect" in end.ask.reason
    assert isinstance(await bench.run(call("2", "send", '{"text":"y"}'), **free), Completed)
    assert isinstance(await bench.run(call("3", "look", arguments), **free), Completed)


@pytest.mark.spec("FLD-084")
async def test_the_same_call_twice_in_one_message_asks_when_the_first_ended_unknown(agent):
    async def lost(run: Run) -> ToolResult:
        return text_result("lost", is_error=True, outcome="unknown")

    bench = Bench(agent, [Scripted("send", lost, effect="change")])
    arguments = '{"text":"x"}'
    calls = [call("1", "send", arguments), call("2", "send", arguments)]
    end = await bench.run(*calls, conversation=conversation(autonomous=True))
    assert isinstance(end, Paused)
    assert end.call.id == "2"
    assert "may already have taken effect" in end.ask.reason


@pytest.mark.spec("TRN-201", "TLS-050")
async def test_a_grant_taken_back_meanwhile_no_longer_counts(agent):
    now = conversation(auto_approve=("write",))

    async def reread():
        return now

    bench = Bench(agent, [Scripted("write", requires_approval=True)])
    await bench.run(call("1", "write"), reread=reread)
    assert bench.sink.allowed["1"][1:] == ("always", "write")
    now = conversation()
    assert isinstance(await bench.run(call("2", "write"), reread=reread), Paused)


@pytest.mark.spec("TRN-148", "TRN-149", "TLS-024")
async def test_after_a_restart_only_repeatable_calls_run_again(agent):
    look, write = Scripted("look", replay_safe=True), Scripted("write")
    bench = Bench(agent, [look, write])
    approved = call("3", "write", "{}")
    await bench.run(
        call("1", "look"),
        call("2", "write"),
        approved,
        recovered=True,
        decisions={"3": approval(approved, "approved", "{}")},
    )
    assert len(look.ran) == 1
    assert bench.sink.outcomes["2"].text.startswith("The server restarted while this call was running")
    assert bench.sink.outcomes["2"].outcome == "unknown"
    assert [run.context.call_id for run in write.ran] == ["3"]


@pytest.mark.spec("PIP-017", "PIP-011")
async def test_a_before_hook_that_raises_blocks_and_is_named(agent):
    class Broken:
        name = "guardian"

        async def before(self, request):
            raise RuntimeError("boom")

    tool = Scripted("look")
    bench = Bench(agent, [tool], hooks=Hooks(before=[Broken()]))
    await bench.run(call("1", "look"))
    assert "guardian" in bench.sink.outcomes["1"].text
    assert "boom" not in bench.sink.outcomes["1"].text
    assert tool.ran == []


@pytest.mark.spec("PIP-133", "PIP-124")
async def test_a_block_may_vote_for_the_end(agent):
    class No:
        name = "no"

        async def before(self, request):
            return Blocked("not today", terminate=True)

    end = await Bench(agent, [Scripted("look")], hooks=Hooks(before=[No()])).run(call("1", "look"))
    assert end.terminate


class Rewrites:
    """A hook that changes arguments."""

    name = "kit"

    def __init__(self, arguments: dict) -> None:
        self._arguments = arguments

    async def before(self, request: BeforeCall) -> Changed:
        # What is done to the copy changes nothing.
        request.arguments["text"] = "by the way"
        return Changed(self._arguments)


class Sees:
    """A hook that remembers what it was shown."""

    name = "later"

    def __init__(self) -> None:
        self.arguments: dict = {}

    async def before(self, request: BeforeCall) -> None:
        self.arguments = dict(request.arguments)


@pytest.mark.spec("PIP-018", "PIP-124")
async def test_changed_arguments_are_validated_and_are_what_later_hooks_the_gate_and_the_tool_get(agent):
    later, tool = Sees(), Scripted("change", requires_approval=True)
    hooks = Hooks(before=[Rewrites({"text": "new", "count": "7"}), later], may_change=frozenset({"kit"}))
    asked = await Bench(agent, [tool], hooks=hooks).run(call("1", "change", '{"text":"old"}'))
    # What a person is asked about is what would run; "7" is a number by the schema.
    assert asked.ask.arguments_json == '{"text":"new","count":7}'
    assert later.arguments == {"text": "new", "count": 7}
    bench = Bench(agent, [tool], hooks=hooks)
    await bench.run(call("1", "change", '{"text":"old"}'), conversation=conversation(autonomous=True))
    assert tool.ran[0].arguments == {"text": "new", "count": 7}


@pytest.mark.spec("PIP-018")
@pytest.mark.parametrize(
    ("arguments", "allowed"), [({"text": ["x"]}, True), ({"other": 1}, True), ({"text": "new"}, False)]
)
async def test_a_change_that_does_not_fit_or_is_not_allowed_blocks(agent, arguments, allowed):
    tool, later = Scripted("look"), Sees()
    may_change = frozenset({"kit"}) if allowed else frozenset()
    hooks = Hooks(before=[Rewrites(arguments), later], may_change=may_change)
    end = await Bench(agent, [tool], hooks=hooks).run(call("1", "look", '{"text":"old"}'))
    assert not tool.ran
    assert later.arguments == {}
    assert not end.outcomes[0].ok
    assert '"kit"' in end.outcomes[0].text


@pytest.mark.spec("PIP-017")
async def test_a_hook_that_writes_into_what_it_is_shown_changes_nothing(agent):
    class Scribbles:
        name = "scribbles"

        async def before(self, request: BeforeCall) -> None:
            request.arguments["text"] = "changed"

    tool = Scripted("look")
    await Bench(agent, [tool], hooks=Hooks(before=[Scribbles()])).run(call("1", "look", '{"text":"old"}'))
    assert tool.ran[0].arguments == {"text": "old"}


@pytest.mark.spec("PIP-033", "PIP-040")
async def test_progress_of_calls_that_overlap_is_told_by_call(agent):
    both = asyncio.Barrier(2)

    async def talk(run):
        for n in range(3):
            await both.wait()
            await run.progress(f"{run.context.call_id} {n}")
        return text_result("done")

    bench = Bench(agent, [Scripted("a", talk, parallel=True)])
    async with asyncio.timeout(30):
        await bench.run(call("1", "a"), call("2", "a"))
    told = list(zip(bench.sink.of("progress"), bench.sink.progress_texts, strict=True))
    assert all(text.startswith(call_id) for call_id, text in told)
    for call_id in ("1", "2"):
        assert [text for of, text in told if of == call_id] == [f"{call_id} {n}" for n in range(3)]
    # They came in turns, not one call after the other.
    assert {call_id for call_id, _ in told[:4]} == {"1", "2"}


@pytest.mark.spec("PIP-019", "PIP-125")
async def test_after_hooks_replace_fields_and_a_failing_one_makes_an_error(agent):
    class Renames:
        name = "renames"

        async def after(self, request, result):
            return Patch(details={"seen": True})

    class Broken:
        name = "broken"

        async def after(self, request, result):
            raise RuntimeError

    bench = Bench(agent, [Scripted("look")], hooks=Hooks(after=[Renames()]))
    await bench.run(call("1", "look"))
    assert bench.sink.outcomes["1"].text == "look ran"
    assert json.loads(bench.sink.outcomes["1"].details_json) == {"seen": True}
    bench = Bench(agent, [Scripted("look")], hooks=Hooks(after=[Broken()]))
    await bench.run(call("1", "look"))
    assert not bench.sink.outcomes["1"].ok
    assert "broken" in bench.sink.outcomes["1"].text


@pytest.mark.spec("TLS-027", "TLS-028", "TRN-126", "PIP-137")
async def test_known_faults_speak_for_themselves_and_unknown_ones_give_their_type(agent, caplog):
    async def known(run):
        raise ToolError("Offset 200 is beyond the end.")

    async def unknown(run):
        raise KeyError("secret text")

    bench = Bench(agent, [Scripted("known", known), Scripted("unknown", unknown)])
    await bench.run(call("1", "known"), call("2", "unknown"))
    assert bench.sink.outcomes["1"].text == "Tool error: Offset 200 is beyond the end."
    assert "KeyError" in bench.sink.outcomes["2"].text
    assert "secret text" not in bench.sink.outcomes["2"].text
    assert not bench.sink.outcomes["2"].ok


@pytest.mark.spec("PIP-134", "PIP-040")
async def test_progress_and_results_hold_no_secret_and_late_progress_is_dropped(agent):
    late = []

    async def run(one: Run) -> ToolResult:
        late.append(one.progress)
        await one.progress("key hunter2-secret", {"k": "hunter2-secret"})
        return text_result("got hunter2-secret", details={"a": ["hunter2-secret"]})

    bench = Bench(agent, [Scripted("look", run)], mask=SecretMask(["hunter2-secret"]))
    await bench.run(call("1", "look", '{"text":"hunter2-secret"}'))
    await late[0]("after the end")
    outcome = bench.sink.outcomes["1"]
    assert bench.sink.progress_texts == ["key [secret]"]
    assert "hunter2" not in outcome.text + outcome.details_json + str(outcome.step_arguments)
    assert bench.sink.of("progress") == ["1"]


@pytest.mark.spec("PIP-129")
async def test_a_listener_that_fails_changes_nothing(agent):
    async def run(one: Run) -> ToolResult:
        await one.progress("half")
        return text_result("whole")

    bench = Bench(agent, [Scripted("look", run)])

    async def fails(*_):
        raise RuntimeError("the watcher is gone")

    bench.sink.progress = fails
    bench.sink.announced = fails
    await bench.run(call("1", "look"))
    assert bench.sink.outcomes["1"].text == "whole"


@pytest.mark.spec("PIP-041", "PIP-032", "PIP-136", "TLS-022")
async def test_a_stop_ends_the_work_keeps_what_was_captured_and_closes_the_rest(agent):
    begun = asyncio.Event()
    ended = []

    async def run(one: Run) -> ToolResult:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append(True)
            return text_result("half of the output", is_error=True, outcome="unknown")
        raise AssertionError

    bench = Bench(agent, [Scripted("shell_run", run, label="Run a command"), Scripted("look")])
    turn = asyncio.create_task(bench.run(call("1", "shell_run"), call("2", "look")))
    await begun.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert ended == [True]
    first, second = bench.sink.stored
    assert "half of the output" in first.text
    assert first.text.splitlines()[-1].startswith("[Run a command was cancelled")
    assert first.cancelled
    assert "stopped before this call began" in second.text
    assert second.outcome == "not_started"


@pytest.mark.spec("PIP-136")
async def test_a_call_that_finished_although_the_turn_was_stopped_says_so(agent):
    begun = asyncio.Event()

    async def run(one: Run) -> ToolResult:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return text_result("written")
        raise AssertionError

    bench = Bench(agent, [Scripted("write", run)])
    turn = asyncio.create_task(bench.run(call("1", "write")))
    await begun.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert bench.sink.stored[0].ok
    assert "had finished all the same" in bench.sink.stored[0].text


async def test_a_stop_during_an_overlapping_batch_stops_every_call_and_stores_all(agent):
    gate = Gate()
    bench = Bench(agent, [Scripted("look", gate, parallel=True)])
    turn = asyncio.create_task(bench.run(*(call(str(n), "look") for n in range(10))))
    await gate.wait_for(8)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert bench.sink.of("stored") == [str(n) for n in range(10)]
    assert len(gate.begun) == 8


async def test_a_turn_handed_over_leaves_its_open_calls_open(agent):
    begun = asyncio.Event()

    async def run(one: Run) -> ToolResult:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    bench = Bench(agent, [Scripted("write", run), Scripted("look")])
    turn = asyncio.create_task(
        bench.run(call("1", "look"), call("2", "write"), call("3", "look"), leave_open=lambda: True)
    )
    await begun.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert bench.sink.of("stored") == ["1"]
    assert bench.sink.of("ended") == ["1"]


@pytest.mark.spec("PIP-042")
async def test_a_host_that_does_not_answer_a_stop_is_left_and_named(agent, monkeypatch):
    monkeypatch.setattr("services.orchestrator.calls.effect.CANCEL_SECONDS", -0.9)
    begun, release = asyncio.Event(), asyncio.Event()

    async def run(one: Run) -> ToolResult:
        begun.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return text_result("too late")

    bench = Bench(agent, [Scripted("stubborn", run)])
    turn = asyncio.create_task(bench.run(call("1", "stubborn")))
    await begun.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    release.set()
    assert "did not answer" in bench.sink.stored[0].text
    assert bench.sink.stored[0].outcome == "unknown"


@pytest.mark.spec("TRN-137")
async def test_one_failing_overlapping_call_leaves_the_others_alone(agent):
    async def fails(run):
        raise RuntimeError

    tools = [Scripted("bad", fails, parallel=True), Scripted("good", parallel=True)]
    bench = Bench(agent, tools)
    await bench.run(call("1", "bad"), call("2", "good"), call("3", "good"))
    assert [bench.sink.outcomes[one].ok for one in "123"] == [False, True, True]


async def test_nothing_runs_when_its_beginning_cannot_be_recorded(agent):
    tool = Scripted("write")
    bench = Bench(agent, [Scripted("look"), tool])
    bench.sink.fail_starting = ConnectionError("database away")
    with pytest.raises(ConnectionError):
        await bench.run(call("1", "write"))
    assert tool.ran == []
    assert bench.sink.stored == []


@pytest.mark.spec("PIP-014", "PIP-122")
async def test_older_shapes_are_converted_before_they_are_checked(agent):
    schema = {
        "type": "object",
        "properties": {"edits": {"type": "array", "items": {"type": "string"}}},
        "required": ["edits"],
    }
    given = []

    def prepare(arguments):
        given.append(dict(arguments))
        return {"edits": [arguments["old_edit"]]} if "old_edit" in arguments else arguments

    tool = Scripted("edit", parameters=schema, prepare=prepare)
    await Bench(agent, [tool]).run(call("1", "edit", '{"old_edit":"x"}'))
    assert tool.ran[0].arguments == {"edits": ["x"]}
    assert given == [{"old_edit": "x"}]


@pytest.mark.spec("TRN-231", "TRN-232", "TRN-233")
async def test_a_note_is_cut_never_asks_and_is_a_step_of_its_own(agent):
    bench = Bench(agent, [])
    text = "word " * 60
    await bench.run(call("1", "progress_note", json.dumps({"text": text})))
    outcome = bench.sink.outcomes["1"]
    assert outcome.ok
    assert outcome.step_kind == "note"
    assert outcome.step_output == " ".join(text.split())[:200]
