"""A sandbox that lies on the wire: nothing it says is believed (SCR-264 to 267, SCR-256)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import grpc
import pytest
from crew.v1 import script_sandbox_pb2 as pb

from services.common.toolhost.contract import text_result
from tests.fixtures.played_sandbox import Script
from tests.integration.scripts.bench import script_bench
from tests.unit.orchestrator.calls.parts import Gate, Scripted

OPENING = "The script did not finish."


def reader(run=None) -> Scripted:
    return Scripted("look", run, replay_safe=True, parallel=True)


async def early_request(script: Script) -> None:
    """A second call before the first is answered."""
    await script.accept()
    for seq in (1, 2):
        await script.send(tool_call=pb.ToolCallRequest(seq=seq, line=1, name="look", args_json="{}"))
    await script.receive()
    await script.finish("got away with it")


async def repeated_seq(script: Script) -> None:
    await script.accept()
    await script.call("look")
    script.seq = 0
    await script.call("look")
    await script.finish("got away with it")


async def skipped_seq(script: Script) -> None:
    await script.accept()
    script.seq = 5
    await script.call("look")
    await script.finish("got away with it")


async def no_acceptance(script: Script) -> None:
    await script.call("look")
    await script.finish("got away with it")


async def accepted_twice(script: Script) -> None:
    await script.accept()
    await script.accept()
    await script.finish("got away with it")


async def empty_message(script: Script) -> None:
    await script.accept()
    await script.send()
    await script.finish("got away with it")


async def arguments_that_are_no_object(script: Script) -> None:
    await script.accept()
    await script.ask("tool_call", pb.ToolCallRequest(line=1, name="look", args_json="[1]"))
    await script.finish("got away with it")


async def arguments_with_nan(script: Script) -> None:
    await script.accept()
    await script.ask("tool_call", pb.ToolCallRequest(line=1, name="look", args_json='{"count": NaN}'))
    await script.finish("got away with it")


async def batch_of_none(script: Script) -> None:
    await script.accept()
    await script.batch()
    await script.finish("got away with it")


async def batch_of_eleven(script: Script) -> None:
    await script.accept()
    await script.batch(*[("look", {})] * 11)
    await script.finish("got away with it")


async def oversized_message(script: Script) -> None:
    await script.accept()
    await script.finish("x" * (17 * 1024 * 1024))


async def more_printed_than_is_kept(script: Script) -> None:
    await script.accept()
    await script.finish("got away with it" + "x" * 60_000)


async def longer_than_it_says(script: Script) -> None:
    await script.accept()
    await script.finish("got away with it", printed_chars=3)


async def longer_without_a_mark(script: Script) -> None:
    await script.accept()
    await script.finish("got away with it", printed_chars=70_001)


async def a_question_of_no_kind(script: Script) -> None:
    await script.accept()
    await script.ask("ask_model", pb.AskModelRequest(line=1, text="x"))
    await script.finish("got away with it")


async def equal_labels(script: Script) -> None:
    await script.accept()
    question = pb.AskModelRequest(line=1, kind=1, text="x", labels=["a", " A "])
    await script.ask("ask_model", question)
    await script.finish("got away with it")


async def a_look_up_of_no_kind(script: Script) -> None:
    await script.accept()
    await script.ask("lookup", pb.LookupRequest(line=1, text="x"))
    await script.finish("got away with it")


async def store_opened_twice(script: Script) -> None:
    await script.accept()
    for _ in range(2):
        await script.ask("open_store", pb.OpenStoreRequest(line=1))
    await script.finish("got away with it")


async def writes_without_opening(script: Script) -> None:
    await script.accept()
    await script.finish("got away with it", writes=[pb.StoreWrite(key="k", json="1")])


async def two_writes_of_one_key(script: Script) -> None:
    await script.accept()
    await script.ask("open_store", pb.OpenStoreRequest(line=1))
    await script.finish("got away with it", writes=[pb.StoreWrite(key="k", json="1")] * 2)


async def a_value_that_is_no_json(script: Script) -> None:
    await script.accept()
    await script.ask("open_store", pb.OpenStoreRequest(line=1))
    await script.finish("got away with it", writes=[pb.StoreWrite(key="k", json="Infinity")])


async def a_value_over_its_size(script: Script) -> None:
    await script.accept()
    await script.ask("open_store", pb.OpenStoreRequest(line=1))
    value = '"' + "x" * 65_535 + '"'
    await script.finish("got away with it", writes=[pb.StoreWrite(key="k", json=value)])


async def a_key_over_its_size(script: Script) -> None:
    await script.accept()
    await script.ask("open_store", pb.OpenStoreRequest(line=1))
    await script.finish("got away with it", writes=[pb.StoreWrite(key="k" * 201, json="1")])


async def a_refusal_nobody_gave(script: Script) -> None:
    await script.accept()
    await script.fail(pb.SCRIPT_FAILURE_KIND_REFUSED, "got away with it", "got away with it")


async def ended_without_an_end(script: Script) -> None:
    await script.accept()


async def goes_on_where_nothing_was(script: Script) -> None:
    await script.send(accepted=pb.Accepted(resumed=True))
    await script.finish("got away with it")


async def a_checkpoint_for_another_request(script: Script) -> None:
    await script.accept()
    await script.send(checkpoint=pb.Checkpoint(seq=7, state=b"x"))
    await script.finish("got away with it")


async def two_checkpoints_for_one_request(script: Script) -> None:
    await script.accept()
    for _ in range(2):
        await script.send(checkpoint=pb.Checkpoint(seq=1, state=b"x"))
    await script.finish("got away with it")


LIES = [
    goes_on_where_nothing_was,
    a_checkpoint_for_another_request,
    two_checkpoints_for_one_request,
    early_request,
    repeated_seq,
    skipped_seq,
    no_acceptance,
    accepted_twice,
    empty_message,
    arguments_that_are_no_object,
    arguments_with_nan,
    batch_of_none,
    batch_of_eleven,
    oversized_message,
    more_printed_than_is_kept,
    longer_than_it_says,
    longer_without_a_mark,
    a_question_of_no_kind,
    equal_labels,
    a_look_up_of_no_kind,
    store_opened_twice,
    writes_without_opening,
    two_writes_of_one_key,
    a_value_that_is_no_json,
    a_value_over_its_size,
    a_key_over_its_size,
    a_refusal_nobody_gave,
    ended_without_an_end,
]


@pytest.mark.spec("SCR-264", "SCR-265", "SCR-256", "SCR-267", "SCR-353")
@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
async def test_a_lie_ends_the_script_and_brings_nothing_in(database, lie: Callable[..., Awaitable[None]]):
    async with script_bench(database, [reader()]) as bench:
        outcome = await bench.run(lie)
        assert not outcome.ok
        assert outcome.text.splitlines()[0] == OPENING
        assert "got away" not in outcome.text
        # Nothing is kept, and the next script is as good as ever.
        rows = await kept(bench)
        assert rows == 0
        assert (await bench.run(honest)).text == "fine"


async def honest(script: Script) -> None:
    await script.accept()
    await script.finish("fine")


async def kept(bench) -> int:
    async with bench.database.connection() as connection:
        cursor = await connection.execute("select count(*) as n from script_values")
        row = await cursor.fetchone()
    return int(row["n"])


@pytest.mark.spec("SCR-265", "SCR-056")
async def test_a_sandbox_that_does_not_count_is_told_to_stop(database):
    looks = reader()

    async def play(script: Script) -> None:
        await script.accept()
        for _ in range(25):
            assert (await script.call("look")).call_result.ok
        answer = await script.call("look", line=26)
        assert answer.WhichOneof("message") == "refuse"
        await script.refused("so far\n")

    async with script_bench(database, [looks]) as bench:
        outcome = await bench.run(play)
    assert len(looks.ran) == 25
    assert outcome.text.splitlines() == [
        OPENING,
        "so far",
        "Stopped at line 26: The script has already made 25 calls. "
        "Merge work or split it into several scripts.",
    ]
    assert outcome.script is not None
    assert len(outcome.script.calls) == 25


@pytest.mark.spec("SCR-265", "SCR-075")
async def test_batches_count_by_their_items(database):
    looks = reader()

    async def play(script: Script) -> None:
        await script.accept()
        for _ in range(2):
            await script.batch(*[("look", {})] * 10)
        answer = await script.batch(*[("look", {})] * 6)
        assert answer.WhichOneof("message") == "refuse"
        await script.refused()

    async with script_bench(database, [looks]) as bench:
        await bench.run(play)
    assert len(looks.ran) == 20


@pytest.mark.spec("SCR-265", "SCR-066")
async def test_look_ups_are_counted_here_too(database):
    async def play(script: Script) -> None:
        await script.accept()
        for n in range(41):
            answer = await script.ask("lookup", pb.LookupRequest(line=1, kind=pb.LOOKUP_KIND_NAMES))
            assert answer.lookup_result.ok is (n < 40)
        await script.finish()

    async with script_bench(database, [reader()]) as bench:
        assert (await bench.run(play)).ok


@pytest.mark.spec("SCR-265", "SCR-053")
async def test_arguments_that_are_too_long_run_nothing(database):
    looks = reader()

    async def play(script: Script) -> None:
        await script.accept()
        assert (await script.call("look", text="x" * (100_000 - len('{"text": ""}')))).call_result.ok
        answer = await script.call("look", text="x" * 100_000)
        assert answer.WhichOneof("message") == "refuse"
        await script.refused()

    async with script_bench(database, [looks]) as bench:
        await bench.run(play)
    assert len(looks.ran) == 1


@pytest.mark.spec("SCR-265", "SCR-233")
async def test_after_a_refusal_nothing_is_answered_and_no_end_is_believed(database):
    looks, writer = reader(), Scripted("change", effect="change", requires_approval=True)

    async def goes_on(script: Script) -> None:
        await script.accept()
        await script.call("change")
        await script.call("look")
        await script.finish("caught it")

    async def says_it_finished(script: Script) -> None:
        await script.accept()
        await script.call("change")
        await script.finish("caught it")

    async with script_bench(database, [looks, writer], script_calls="gated") as bench:
        for play in (goes_on, says_it_finished):
            outcome = await bench.run(play)
            assert not outcome.ok
            assert "caught" not in outcome.text
    assert not looks.ran
    assert not writer.ran


@pytest.mark.spec("SCR-255", "SCR-256", "SCR-353")
async def test_a_sandbox_that_dies_in_a_call_leaves_the_call_on_the_card(database):
    gate = Gate()

    async def play(script: Script) -> None:
        await script.accept()
        request = pb.ToolCallRequest(seq=1, line=1, name="look", args_json="{}")
        await script.send(tool_call=request)
        await gate.wait_for(1)
        raise RuntimeError("the process is gone")

    async with script_bench(database, [reader(gate)]) as bench:
        running = asyncio.create_task(bench.run(play))
        async with asyncio.timeout(30):
            await bench.sandbox.ended.wait()
        gate.go.set()
        outcome = await running
    assert outcome.text.startswith(OPENING)
    assert "what was printed is lost" in outcome.text
    assert outcome.script is not None
    assert [call.ok for call in outcome.script.calls] == [True]


@pytest.mark.spec("SCR-238")
async def test_a_sandbox_that_never_ends_is_left(database):
    async def play(script: Script) -> None:
        await script.accept()
        await asyncio.Event().wait()

    async with script_bench(database, [reader()], seconds=0.5) as bench:
        outcome = await bench.run(play)
    assert "300 seconds in all" in outcome.text


@pytest.mark.spec("SCR-253")
async def test_a_sandbox_without_a_fence_says_so(database):
    async def play(script: Script) -> None:
        await script._context.abort(
            grpc.StatusCode.FAILED_PRECONDITION, "No fence can be put up: no seccomp."
        )

    async with script_bench(database, [reader()]) as bench:
        outcome = await bench.run(play)
    assert outcome.text == f"{OPENING}\nNo fence can be put up: no seccomp."
    assert outcome.outcome == "not_started"


@pytest.mark.spec("SCR-266")
async def test_nothing_but_the_script_and_names_crosses(database):
    async with script_bench(database, [reader()]) as bench:
        await bench.run(honest, script="print(1)")
        start = bench.sandbox.scripts[0].start
        described = str(start)
        assert start.script == "print(1)"
        assert list(start.callable_tools) == ["look"]
        for secret in (str(bench.agent.home), bench.database.url, "sk-of-the-test", bench.conversation.id):
            assert secret not in described


async def test_an_answer_of_a_tool_is_cut_for_the_script(database):
    async def long_answer(run):
        return text_result("é" * 200_001)

    async def play(script: Script) -> None:
        await script.accept()
        answer = await script.call("look")
        assert len(answer.call_result.text) == 200_000
        await script.finish()

    async with script_bench(database, [reader(long_answer)], tool_output_chars=100) as bench:
        outcome = await bench.run(play)
    assert outcome.script is not None
    assert outcome.script.received_chars == 200_000
