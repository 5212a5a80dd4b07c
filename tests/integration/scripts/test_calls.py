"""What a script calls passes the gate, the hooks and the budget of a direct call (SCR-042 to 096, 105)."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from services.common.toolhost.contract import Ask, NoOpinion, Refuse, Routine, ToolError, text_result
from services.orchestrator.calls.budget import NestedBudget
from services.orchestrator.calls.hooks import Blocked, Hooks
from tests.fixtures.played_sandbox import Script
from tests.integration.scripts.bench import script_bench
from tests.unit.orchestrator.calls.parts import Gate, Scripted

OPENING = "The script did not finish."


def look(run=None, **flags) -> Scripted:
    return Scripted("look", run, replay_safe=True, parallel=True, **flags)


def change(run=None, name="change", **flags) -> Scripted:
    return Scripted(name, run, effect="change", requires_approval=True, **flags)


async def refuses(script: Script, answer) -> None:
    """The script was told to stop, and does."""
    assert answer.WhichOneof("message") == "refuse"
    await script.refused()


@pytest.mark.spec("SCR-001", "SCR-239", "SCR-269", "SCR-279", "SCR-277", "SCR-282")
async def test_a_script_calls_a_tool_and_answers_with_what_it_printed(database):
    async def play(script: Script) -> None:
        await script.accept()
        answer = await script.call("look", text="a  b")
        assert answer.call_result.ok
        assert answer.call_result.text == "seen"
        await script.finish("three lines\n")

    async def seen(run):
        return text_result("seen")

    async with script_bench(database, [look(seen)]) as bench:
        outcome = await bench.run(play)
        told = [call.fields() for call in bench.sink.nested_calls]
    assert outcome.ok
    assert outcome.text == "three lines\n"
    assert outcome.script is not None
    assert outcome.script.received_chars == 4
    assert outcome.script.printed_chars == 12
    assert list(told[0]) == ["name", "arguments", "ok", "output", "ms", "cost_usd", "metered"]
    assert told == [call.fields() for call in outcome.script.calls]
    assert (told[0]["name"], told[0]["arguments"], told[0]["output"]) == ("look", {"text": "a  b"}, "seen")
    assert told[0]["metered"] is False


@pytest.mark.spec("SCR-239")
@pytest.mark.parametrize(
    ("locale", "sentence"),
    [
        ("en", "The script ran to the end and printed nothing."),
        ("vi", "Script đã chạy đến hết và không in ra gì."),
    ],
)
async def test_a_script_that_prints_nothing_says_so(database, locale, sentence):
    async def play(script: Script) -> None:
        await script.accept()
        await script.finish()

    async with script_bench(database, [look()]) as bench:
        bench.locale = locale
        outcome = await bench.run(play)
    assert outcome.ok
    assert outcome.text == sentence


@pytest.mark.spec("SCR-354", "SCR-355", "SCR-235")
@pytest.mark.parametrize(("locale", "opening"), [("en", OPENING), ("vi", "Script không chạy xong.")])
async def test_a_script_that_fails_opens_with_its_line_then_what_it_printed_then_why(
    database, locale, opening
):
    async def play(script: Script) -> None:
        await script.accept()
        await script.fail(1, "Error at line 2: ValueError: no", "before")

    async with script_bench(database, [look()]) as bench:
        bench.locale = locale
        outcome = await bench.run(play)
    assert not outcome.ok
    assert outcome.text.splitlines() == [opening, "before", "Error at line 2: ValueError: no"]


@pytest.mark.spec("SCR-174", "SCR-351")
async def test_a_script_of_20000_characters_is_taken_and_of_one_more_is_not(database):
    async def play(script: Script) -> None:
        await script.accept()
        await script.finish("ran")

    async with script_bench(database, [look()]) as bench:
        assert (await bench.run(play, script="#" * 20_000)).text == "ran"
        outcome = await bench.run(play, script="#" * 20_001)
        assert len(bench.sandbox.scripts) == 1
    assert outcome.text.splitlines()[0] == OPENING
    assert "20000" in outcome.text


@pytest.mark.spec("SCR-045", "SCR-270")
async def test_the_error_of_a_tool_reaches_the_script_as_the_tool_wrote_it(database):
    async def fails(run):
        raise ToolError("no such file: " + "x" * 700)

    async def play(script: Script) -> None:
        await script.accept()
        answer = await script.call("look")
        assert not answer.call_result.ok
        assert answer.call_result.text == "no such file: " + "x" * 700
        await script.finish("went on")

    async with script_bench(database, [look(fails)]) as bench:
        outcome = await bench.run(play)
    assert outcome.ok
    assert outcome.script is not None
    entry = outcome.script.calls[0]
    assert not entry.ok
    assert len(entry.output) == 601


@pytest.mark.spec("SCR-046")
async def test_wrong_parameters_say_how_to_call(database):
    async def play(script: Script) -> None:
        await script.accept()
        answer = await script.call("look", nope=1)
        assert answer.call_result.text.endswith("Call it as: look(text?: string, count?: integer)")
        await script.finish()

    tool = look()
    async with script_bench(database, [tool]) as bench:
        await bench.run(play)
    assert not tool.ran


@pytest.mark.spec("SCR-049", "SCR-050", "SCR-109", "TRN-112")
async def test_a_name_that_does_not_exist_counts_in_the_script_and_not_in_the_turn(database):
    async def play(script: Script) -> None:
        await script.accept()
        answer = await script.call("loook")
        assert not answer.call_result.ok
        assert "Did you mean `look`?" in answer.call_result.text
        assert "tools.names()" in answer.call_result.text
        assert "tools.search" in answer.call_result.text
        for _ in range(24):
            await script.call("loook")
        await refuses(script, await script.call("look"))

    tool = look()
    async with script_bench(
        database,
        [tool],
    ) as bench:
        bench.budget = NestedBudget(1)
        await bench.run(play)
        assert bench.budget.take(1)
    assert not tool.ran


@pytest.mark.spec("SCR-051", "SCR-052", "SCR-034", "SCR-273", "TRN-195")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "change",
            "`change` is not open to scripts because it may ask a person or change data. Call it directly.",
        ),
        ("artifact_read", "call it directly"),
        ("read_transcript", "call it directly"),
        ("progress_note", "call it directly"),
        ("tool_script", "call it directly"),
        ("ask_user", "always has to ask the person, so a script cannot call it"),
    ],
)
async def test_a_tool_that_is_not_open_ends_the_script(database, name, said):
    async def play(script: Script) -> None:
        await script.accept()
        answer = await script.call(name, line=2, text="a secret word")
        await refuses(script, answer)

    tools = [look(), change(), Scripted("artifact_read", replay_safe=True)]
    tools += [Scripted("read_transcript", replay_safe=True)]
    async with script_bench(database, tools) as bench:
        outcome = await bench.run(play)
        assert not bench.sink.nested_calls
    assert outcome.text.startswith(f"{OPENING}\nStopped at line 2: ")
    assert said in outcome.text
    assert name in outcome.text
    assert "a secret word" not in outcome.text
    assert outcome.script is not None
    assert not outcome.script.calls
    assert not any(tool.ran for tool in tools)


@pytest.mark.spec("SCR-038", "SCR-362", "SCR-037")
async def test_a_gated_script_is_as_far_from_asking_and_transcripts(database):
    names = ("ask_user", "schedule_create", "read_transcript", "read_tool_result", "set_timer")

    async with script_bench(
        database,
        [look(), *(Scripted(name, effect="change") for name in names[1:])],
        script_calls="gated",
    ) as bench:
        for name in names:

            async def play(script: Script, name=name) -> None:
                await script.accept()
                await refuses(script, await script.call(name))

            assert "call it directly" in (await bench.run(play)).text


@pytest.mark.spec("SCR-047")
async def test_hooks_see_each_call_and_may_block_it(database):
    class Hook:
        name = "careful"

        def __init__(self) -> None:
            self.asked: list[str] = []

        async def before(self, request):
            self.asked.append(request.call.name)
            if request.arguments.get("text") == "no":
                return Blocked("not this one")
            return None

    async def play(script: Script) -> None:
        await script.accept()
        assert (await script.call("look")).call_result.ok
        answer = await script.call("look", text="no")
        assert (answer.call_result.ok, answer.call_result.text) == (False, "not this one")
        await script.finish()

    hook, tool = Hook(), look()
    async with script_bench(database, [tool], hooks=Hooks(before=[hook])) as bench:
        await bench.run(play)
    assert hook.asked == ["tool_script", "look", "look"]
    assert len(tool.ran) == 1


@pytest.mark.spec("SCR-048")
async def test_a_call_that_fails_outside_its_tool_is_its_own_error(database):
    async def play(script: Script) -> None:
        await script.accept()
        answer = await script.call("look")
        assert (answer.call_result.ok, answer.call_result.text) == (False, "Tool error: RuntimeError")
        assert (await script.call("look")).call_result.ok
        await script.finish("went on")

    async with script_bench(database, [look()]) as bench:
        told = bench.sink.inner_ended

        async def fails_once(*args):
            bench.sink.inner_ended = told
            raise RuntimeError("a secret in a message")

        bench.sink.inner_ended = fails_once
        outcome = await bench.run(play)
    assert outcome.text == "went on"
    assert outcome.script is not None
    assert [call.ok for call in outcome.script.calls] == [False, True]


class TestTheGate:
    @pytest.mark.spec("SCR-084", "SCR-095", "SCR-280", "SCR-081")
    @pytest.mark.parametrize(
        ("verdict", "stance"),
        [
            (NoOpinion(), {"autonomous": True}),
            (NoOpinion(), {"auto_approve": ("change",)}),
            (Routine("make"), {}),
        ],
    )
    async def test_a_call_runs_when_a_direct_one_would_without_asking(self, database, verdict, stance):
        async def judge():
            return verdict

        async def play(script: Script) -> None:
            await script.accept()
            assert (await script.call("change")).call_result.ok
            assert (await script.call("look")).call_result.ok
            await script.finish("done")

        tool = change(judge=judge)
        async with script_bench(database, [look(), tool], script_calls="gated") as bench:
            bench.conversation = replace(bench.conversation, **stance)
            outcome = await bench.run(play)
        assert outcome.text == "done"
        assert len(tool.ran) == 1
        assert outcome.script is not None
        written, read = outcome.script.calls
        assert written.fields()["gated"] is True
        assert "gated" not in read.fields()

    @pytest.mark.spec("SCR-084")
    async def test_a_writing_tool_that_needs_no_approval_runs(self, database):
        async def play(script: Script) -> None:
            await script.accept()
            assert (await script.call("note")).call_result.ok
            await script.finish()

        tool = Scripted("note", effect="change")
        async with script_bench(database, [tool], script_calls="gated") as bench:
            assert (await bench.run(play)).ok
        assert len(tool.ran) == 1

    @pytest.mark.spec("SCR-086", "SCR-088", "SCR-090", "SCR-091", "TRN-195", "SCR-292")
    async def test_a_call_that_would_ask_ends_the_script_and_takes_nothing(self, database):
        async def play(script: Script) -> None:
            await script.accept()
            answer = await script.call("change", text="rm the secret")
            assert "rm the secret" not in answer.refuse.text
            await refuses(script, answer)

        tool = change()
        async with script_bench(database, [tool], script_calls="gated") as bench:
            bench.budget = NestedBudget(1)
            outcome = await bench.run(play)
            assert bench.budget.take(1), "a refused call takes no room"
            assert not bench.sink.nested_calls
        assert "Call it directly" in outcome.text
        assert "`change`" in outcome.text
        assert "rm the secret" not in outcome.text
        assert not tool.ran

    @pytest.mark.spec("SCR-085", "SCR-087", "SCR-090")
    async def test_an_ask_pattern_of_the_shell_asks_even_where_all_is_allowed(self, database):
        async def judge():
            return Ask("the command is rm -rf the-secret-folder", rule="rm -rf")

        async def play(script: Script) -> None:
            await script.accept()
            await refuses(script, await script.call("shell_run", text="the-secret-folder"))

        tool = change(name="shell_run", judge=judge)
        async with script_bench(database, [tool], script_calls="gated") as bench:
            bench.conversation = replace(bench.conversation, autonomous=True, auto_approve=("shell_run",))
            outcome = await bench.run(play)
        assert '"rm -rf"' in outcome.text
        assert "Call `shell_run` directly" in outcome.text
        assert "the-secret-folder" not in outcome.text
        assert not tool.ran

    @pytest.mark.spec("SCR-089", "SCR-090")
    async def test_a_denied_command_says_to_look_for_no_other_way(self, database):
        async def judge():
            return Refuse("denied: curl the-secret-host", rule="curl")

        async def play(script: Script) -> None:
            await script.accept()
            await refuses(script, await script.call("shell_run", text="the-secret-host"))

        tool = change(name="shell_run", judge=judge)
        async with script_bench(database, [tool], script_calls="gated") as bench:
            outcome = await bench.run(play)
        assert '"curl"' in outcome.text
        assert "Do not look for another way; tell the person" in outcome.text
        assert "the-secret-host" not in outcome.text
        assert not tool.ran

    async def test_a_rule_of_another_tool_is_never_quoted(self, database):
        async def judge():
            return Ask("because of the-secret-folder", rule="the-secret-folder")

        async def play(script: Script) -> None:
            await script.accept()
            await refuses(script, await script.call("change"))

        async with script_bench(database, [change(judge=judge)], script_calls="gated") as bench:
            outcome = await bench.run(play)
        assert "the-secret-folder" not in outcome.text

    @pytest.mark.spec("SCR-083")
    async def test_the_fence_of_a_tool_is_an_error_of_that_call(self, database):
        async def judge():
            return Refuse("outside of the paths that may be written")

        async def play(script: Script) -> None:
            await script.accept()
            answer = await script.call("change")
            assert answer.call_result.text == "outside of the paths that may be written"
            await script.finish("went on")

        tool = change(judge=judge)
        async with script_bench(database, [tool], script_calls="gated") as bench:
            bench.conversation = replace(bench.conversation, autonomous=True)
            outcome = await bench.run(play)
        assert outcome.text == "went on"
        assert not tool.ran

    @pytest.mark.spec("SCR-081", "SCR-092", "SCR-093", "SCR-080", "SCR-094", "TRN-113")
    async def test_a_batch_of_writes_is_judged_again_before_each_call(self, database):
        """The first call runs; then the person takes autonomy back."""
        stance = {"autonomous": True}

        async def takes_it_back(run):
            if run.arguments["text"] == "1":
                stance["autonomous"] = False
            return text_result("done")

        async def reread():
            return replace(bench.conversation, **stance)

        async def play(script: Script) -> None:
            await script.accept()
            calls = [("change", {"text": str(n)}) for n in range(4)]
            await refuses(script, await script.batch(*calls, line=3))

        tool = change(takes_it_back)
        async with script_bench(database, [tool], script_calls="gated") as bench:
            bench.budget = NestedBudget(4)
            outcome = await bench.run(play, reread=reread)
            assert [run.arguments["text"] for run in tool.ran] == ["0", "1"]
            assert bench.budget.take(2), "two of four places came back"
            assert not bench.budget.take(1)
        assert "Stopped at line 3" in outcome.text
        assert outcome.script is not None
        assert len(outcome.script.calls) == 2

    @pytest.mark.spec("SCR-082", "SCR-091")
    async def test_one_refusal_keeps_a_whole_batch_from_running(self, database):
        async def play(script: Script) -> None:
            await script.accept()
            await refuses(script, await script.batch(("note", {}), ("change", {})))

        free, asks = Scripted("note", effect="change"), change()
        async with script_bench(database, [free, asks], script_calls="gated") as bench:
            await bench.run(play)
        assert not free.ran
        assert not asks.ran


class TestBatches:
    @pytest.mark.spec("SCR-069", "SCR-070", "SCR-071", "SCR-078", "SCR-076")
    async def test_four_run_at_once_and_answer_in_the_written_order(self, database):
        gate, most = Gate(), 0

        async def run(each):
            nonlocal most
            most = max(most, len(gate.begun) - done)
            return await gate(each)

        done = 0

        async def play(script: Script) -> None:
            await script.accept()
            calls = [("look", {"text": str(n)}) for n in range(9)] + [("lok", {})]
            answer = await script.batch(*calls)
            items = answer.batch_result.items
            assert [item.ok for item in items] == [True] * 9 + [False]
            assert [item.text for item in items[:9]] == [f"s1.{n + 1}" for n in range(9)]
            assert "Did you mean" in items[9].text
            await script.finish("done")

        async with script_bench(database, [look(run)]) as bench:
            running = asyncio.create_task(bench.run(play))
            await gate.wait_for(4)
            # The fifth would have begun by now: four are waiting at the gate, none has ended.
            for _ in range(50):
                await asyncio.sleep(0)
            assert len(gate.begun) == 4
            gate.go.set()
            outcome = await running
        assert outcome.text == "done"
        assert len(gate.begun) == 9
        assert outcome.script is not None
        assert [call.arguments.get("text") for call in outcome.script.calls] == [
            *(str(n) for n in range(9)),
            None,
        ]

    @pytest.mark.spec("SCR-072")
    async def test_with_a_write_in_it_calls_run_one_by_one_in_the_written_order(self, database):
        at_once, most, order = 0, 0, []

        async def run(each):
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            await asyncio.sleep(0.01)
            order.append(each.arguments["text"])
            at_once -= 1
            return text_result("x")

        async def play(script: Script) -> None:
            await script.accept()
            calls = [("look", {"text": "0"}), ("note", {"text": "1"}), ("look", {"text": "2"})]
            await script.batch(*calls)
            await script.finish()

        tools = [look(run), Scripted("note", run, effect="change")]
        async with script_bench(database, tools, script_calls="gated") as bench:
            await bench.run(play)
        assert order == ["0", "1", "2"]
        assert most == 1

    @pytest.mark.spec("SCR-077")
    async def test_an_item_that_is_not_open_stops_all_before_any_runs(self, database):
        async def play(script: Script) -> None:
            await script.accept()
            await refuses(script, await script.batch(("look", {}), ("change", {}), line=4))

        reading = look()
        async with script_bench(database, [reading, change()]) as bench:
            outcome = await bench.run(play)
        assert not reading.ran
        assert "Stopped at line 4" in outcome.text


class TestTheBudgetOfTheTurn:
    @pytest.mark.spec("SCR-106", "SCR-107", "SCR-108", "TRN-110", "TRN-111", "TRN-114")
    @pytest.mark.parametrize(
        ("locale", "stopped", "closed"),
        [
            (
                "en",
                "Stopped at line 11: this turn has used all 10 of its nested calls.",
                "Not run: the turn used all 10 nested calls of its scripts, so it stopped before this one.",
            ),
            (
                "vi",
                "Dừng ở dòng 11: lượt đã dùng hết 10 lời gọi lồng.",
                "Không chạy: lượt đã dùng hết 10 lời gọi lồng của script nên dừng trước lệnh này.",
            ),
        ],
    )
    async def test_a_call_over_it_stops_the_script_and_closes_what_follows(
        self, database, locale, stopped, closed
    ):
        async def play(script: Script) -> None:
            await script.accept()
            for n in range(10):
                await script.call("look", line=n + 1)
            await refuses(script, await script.call("look", line=11))

        tool = look()
        async with script_bench(database, [tool]) as bench:
            bench.locale, bench.budget, bench.sandbox.play = locale, NestedBudget(10), play
            first, second = await bench.run_all(["first", "second"])
            assert bench.budget.exhausted
            assert len(bench.sandbox.scripts) == 1
        assert first.text.splitlines()[1] == stopped
        assert second.text == closed
        assert second.outcome == "not_started"
        assert len(tool.ran) == 10

    @pytest.mark.spec("SCR-079", "TRN-113")
    async def test_a_batch_that_does_not_fit_runs_none_of_its_calls(self, database):
        async def play(script: Script) -> None:
            await script.accept()
            await script.call("look")
            await refuses(script, await script.batch(*[("look", {})] * 4))

        tool = look()
        async with script_bench(database, [tool]) as bench:
            bench.budget = NestedBudget(4)
            await bench.run(play)
        assert len(tool.ran) == 1

    @pytest.mark.spec("SCR-079")
    async def test_a_batch_that_just_fits_runs(self, database):
        async def play(script: Script) -> None:
            await script.accept()
            # A name that does not exist needs no room.
            answer = await script.batch(*[("look", {})] * 4, ("lok", {}))
            assert answer.WhichOneof("message") == "batch_result"
            await script.finish()

        tool = look()
        async with script_bench(database, [tool]) as bench:
            bench.budget = NestedBudget(4)
            assert (await bench.run(play)).ok
        assert len(tool.ran) == 4


class TestStopping:
    @pytest.mark.spec("SCR-255", "SCR-080")
    async def test_stopping_the_turn_ends_the_script_and_its_calls(self, database):
        gate = Gate()

        async def play(script: Script) -> None:
            await script.accept()
            await script.batch(*[("look", {})] * 6)

        async with script_bench(database, [look(gate)]) as bench:
            bench.budget = NestedBudget(6)
            running = asyncio.create_task(bench.run(play))
            await gate.wait_for(4)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            async with asyncio.timeout(30):
                await bench.sandbox.ended.wait()
            outcome = bench.sink.outcomes["s1"]
            assert bench.budget.take(2), "two calls never began"
            assert len(gate.begun) == 4
        assert outcome.cancelled
        assert not outcome.ok
        assert outcome.script is not None
        assert len(outcome.script.calls) == 4


@pytest.mark.spec("SCR-043", "SCR-054")
async def test_digits_reach_the_tool_as_the_script_wrote_them(database):
    async def play(script: Script) -> None:
        await script.accept()
        await script.call(
            "look", count=115792089237316195423570985008687907853269984665640564039457584007913129639935
        )
        await script.finish()

    tool = look()
    async with script_bench(database, [tool]) as bench:
        await bench.run(play)
    assert json.dumps(int(tool.ran[0].arguments["count"])).endswith("129639935")


@pytest.mark.spec("SCR-245")
async def test_what_a_script_printed_is_shortened_like_any_result(database):
    async def play(script: Script) -> None:
        await script.accept()
        await script.finish("word " * 6_000)

    async with script_bench(database, [look()]) as bench:
        outcome = await bench.run(play)
    assert len(outcome.text) <= 8_000
    assert outcome.shortened == "cut"
    assert outcome.script is not None
    assert outcome.script.printed_chars == 30_000


@pytest.mark.spec("SCR-246")
async def test_what_no_database_takes_is_replaced(database):
    async def play(script: Script) -> None:
        await script.accept()
        await script.finish("a\0b")

    async with script_bench(database, [look()]) as bench:
        outcome = await bench.run(play)
    assert outcome.text.startswith("a\ufffdb")


@pytest.mark.spec("SCR-274")
async def test_the_card_shows_twelve_parameters_and_the_tool_gets_all(database):
    async def play(script: Script) -> None:
        await script.accept()
        arguments = {f"p{n}": "x" * 200 for n in range(13)}
        await script.call("look", **arguments, number=int("9" * 200))
        await script.finish()

    tool = look(parameters={"type": "object", "additionalProperties": True})
    async with script_bench(database, [tool]) as bench:
        outcome = await bench.run(play)
    assert outcome.script is not None
    shown = outcome.script.calls[0].arguments
    assert len(shown) == 13
    assert shown["p0"] == "x" * 160
    assert "2" in shown["…"]
    assert len(tool.ran[0].arguments) == 14


@pytest.mark.spec("SCR-258", "SCR-259", "SCR-260")
async def test_a_start_comes_first_and_after_a_rejection_nothing(database):
    async def play(script: Script) -> None:
        await script.send(rejected={"line": 2, "reason": "Not run: line 2: import."})
        # Whatever comes after it, nobody reads.
        await script.send(tool_call={"seq": 1, "line": 1, "name": "look", "args_json": "{}"})

    tool = look()
    async with script_bench(database, [tool]) as bench:
        outcome = await bench.run(play, script="one\nimport os")
        start = bench.sandbox.scripts[0].start
    assert (start.script, start.locale, start.llm_enabled, start.store_available) == (
        "one\nimport os",
        "en",
        True,
        True,
    )
    assert list(start.callable_tools) == ["look"]
    assert outcome.text == f"{OPENING}\nNot run: line 2: import."
    assert outcome.outcome == "not_started"
    assert not tool.ran
