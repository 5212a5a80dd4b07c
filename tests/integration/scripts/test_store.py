"""`store` and `load`: what a script keeps, when, and for whom (SCR-299 to 339)."""

from __future__ import annotations

import asyncio
import json

import pytest
from crew.v1 import script_sandbox_pb2 as pb

from services.common.toolhost.contract import text_result
from services.orchestrator.store import conversations, scripts
from services.orchestrator.store.scripts import StoreName, Write
from tests.fixtures.played_sandbox import Script
from tests.integration.scripts.bench import ScriptBench, script_bench
from tests.unit.orchestrator.calls.parts import Scripted

OPENING = "The script did not finish."


def look() -> Scripted:
    return Scripted("look", replay_safe=True)


def writing(writes: dict[str, str | None], *, seen: dict | None = None, then: str = "finish"):
    """A script that opens its store and ends with these writes."""

    async def play(script: Script) -> None:
        await script.accept()
        answer = await script.ask("open_store", pb.OpenStoreRequest(line=1))
        if seen is not None:
            seen.clear()
            seen.update({entry.key: entry.json for entry in answer.store_snapshot.entries})
            seen["used"] = answer.store_snapshot.used_chars
        if then == "fail":
            await script.fail(1, "Error at line 2: ZeroDivisionError: division by zero")
            return
        found = [
            pb.StoreWrite(key=key, **({} if value is None else {"json": value}))
            for key, value in writes.items()
        ]
        await script.finish("ran", writes=found)

    return play


async def kept(bench: ScriptBench) -> dict[str, str]:
    async with bench.database.connection() as connection:
        return {value.key: value.json for value in await scripts.all_of(connection, bench.agent.id)}


@pytest.mark.spec("SCR-299", "SCR-307", "SCR-312", "SCR-315", "SCR-321", "SCR-303", "SCR-304")
async def test_writes_are_kept_at_the_end_exactly_as_they_were_written(database):
    value = '{"b":1.10,"a":[1,null],"é":"\\u0000"}'
    seen: dict = {}
    async with script_bench(database, [look()]) as bench:
        assert (await bench.run(writing({"k": value, "a key with / and \0": "1"}))).text == "ran"
        assert await kept(bench) == {"k": value, "a key with / and \0": "1"}
        await bench.run(writing({"k": None, "never kept": None}, seen=seen))
        assert seen == {"k": value, "a key with / and \0": "1", "used": len(value) + 1 + 18 + 1}
        assert await kept(bench) == {"a key with / and \0": "1"}
        async with bench.database.connection() as connection:
            rows = await scripts.all_of(connection, bench.agent.id)
        assert rows[0].namespace == f"conv:{bench.conversation.id}"


@pytest.mark.spec("SCR-307", "SCR-308")
async def test_a_script_that_ends_any_other_way_keeps_nothing(database):
    async with script_bench(database, [look()]) as bench:
        outcome = await bench.run(writing({"k": "1"}, then="fail"))
        assert not outcome.ok
        assert await kept(bench) == {}


@pytest.mark.spec("SCR-313", "SCR-314")
async def test_the_store_counts_as_no_call_and_is_open_to_a_reading_script(database):
    async with script_bench(database, [look()], script_calls="read_only") as bench:
        outcome = await bench.run(writing({"k": "1"}))
        assert await kept(bench) == {"k": "1"}
    assert outcome.script is not None
    assert not outcome.script.calls
    assert outcome.script.received_chars == 0


@pytest.mark.spec("SCR-309", "SCR-310", "SCR-311", "SCR-351", "SCR-354")
async def test_a_store_holds_262144_characters_and_not_one_more(database):
    full = {f"k{n}": json.dumps("x" * 65_532) for n in range(4)}
    assert sum(len(key) + len(value) for key, value in full.items()) == 262_144
    async with script_bench(database, [look()]) as bench:
        assert (await bench.run(writing(full))).ok
        before = await kept(bench)
        outcome = await bench.run(writing({"k0": "1", "y": full["k0"]}))
        assert not outcome.ok
        assert outcome.text.splitlines() == [
            OPENING,
            "ran",
            "The script ran to its end but kept NOTHING with store: the store is full: with this write it "
            "would hold 262146 characters (keys and values), over 262144. Forget some with "
            "store(key, None) or keep less. Run the script again.",
        ]
        assert await kept(bench) == before
        assert (await bench.run(writing({"k0": None}))).ok, "a full store can forget"


@pytest.mark.spec("SCR-311", "SCR-312", "SCR-332")
async def test_of_two_scripts_that_end_together_and_do_not_fit_one_keeps_nothing(database):
    """Both saw the empty store; each alone would fit."""
    both = asyncio.Barrier(2)

    def half(letter: str):
        async def play(script: Script) -> None:
            await script.accept()
            await script.ask("open_store", pb.OpenStoreRequest(line=1))
            await both.wait()
            writes = [pb.StoreWrite(key=f"{letter}{n}", json=json.dumps("x" * 65_000)) for n in range(3)]
            await script.finish("ran", writes=writes)

        return play

    async with script_bench(database, [look()]) as bench:
        plays = iter([half("a"), half("b")])

        async def play(script: Script) -> None:
            await next(plays)(script)

        outcomes = await asyncio.gather(bench.run(play), bench.run(play))
        left = await kept(bench)
    assert sorted(outcome.ok for outcome in outcomes) == [False, True]
    assert len(left) == 3
    assert len({key[0] for key in left}) == 1
    loser = next(outcome for outcome in outcomes if not outcome.ok)
    assert "kept NOTHING" in loser.text


@pytest.mark.spec("SCR-312")
async def test_two_scripts_that_fit_keep_both_and_the_later_wins_on_one_key(database):
    async with script_bench(database, [look()]) as bench:
        order: list[str] = []

        async def first(script: Script) -> None:
            await script.accept()
            await script.ask("open_store", pb.OpenStoreRequest(line=1))
            # The second runs from start to end within the first.
            await script.call("look")
            await script.finish(
                "ran", writes=[pb.StoreWrite(key="both", json='"1"'), pb.StoreWrite(key="one", json="1")]
            )

        inside = writing({"both": '"2"', "two": "2"})

        async def play(script: Script) -> None:
            order.append("x")
            await (first if len(order) == 1 else inside)(script)

        async def run_inside(run):
            await bench.run(play)
            return text_result("ok")

        bench.tools[0]._run = run_inside
        await bench.run(play)
        assert await kept(bench) == {"both": '"1"', "one": "1", "two": "2"}


@pytest.mark.spec("SCR-316")
async def test_a_store_goes_with_its_conversation(database):
    async with script_bench(database, [look()]) as bench:
        await bench.run(writing({"k": "1"}))
        async with bench.database.transaction() as connection:
            await conversations.delete(connection, bench.conversation.id)
        assert await kept(bench) == {}


@pytest.mark.spec("SCR-319")
async def test_two_agents_never_read_each_other(database):
    async with script_bench(database, [look()]) as bench:
        other = StoreName("other", f"conv:{bench.conversation.id}", bench.conversation.id)
        async with bench.database.transaction() as connection:
            await scripts.apply(connection, other, [Write("k", "1")], generation=0, most_chars=100)
        seen: dict = {}
        await bench.run(writing({}, seen=seen))
        assert seen == {"used": 0}


REMOVED = "The script kept nothing: the agent that ran it was removed from the crew."


@pytest.mark.spec("SCR-334", "SCR-335", "SCR-338")
async def test_a_script_of_a_removed_agent_keeps_nothing_even_under_a_new_one(database):
    async with script_bench(database, [look()]) as bench:
        await bench.run(writing({"old": "1"}))
        name = StoreName(bench.agent.id, f"conv:{bench.conversation.id}", bench.conversation.id)

        async def removal(run):
            async with bench.database.transaction() as connection:
                await scripts.agent_removed(connection, bench.agent.id)
            async with bench.database.transaction() as connection:
                new = await scripts.generation(connection, bench.agent.id)
                await scripts.apply(connection, name, [Write("new", "1")], generation=new, most_chars=100)
            return text_result("removed")

        bench.tools[0]._run = removal

        async def play(script: Script) -> None:
            await script.accept()
            await script.ask("open_store", pb.OpenStoreRequest(line=1))
            await script.call("look")
            await script.finish("ran", writes=[pb.StoreWrite(key="k", json="1")])

        outcome = await bench.run(play)
        assert outcome.text.splitlines() == [OPENING, "ran", REMOVED]
        assert await kept(bench) == {"new": "1"}


@pytest.mark.spec("SCR-336")
async def test_a_first_load_after_the_removal_finds_nothing_and_ends_so(database):
    async with script_bench(database, [look()]) as bench:
        await bench.run(writing({"old": "1"}))

        async def removal(run):
            async with bench.database.transaction() as connection:
                await scripts.agent_removed(connection, bench.agent.id)
            return text_result("removed")

        bench.tools[0]._run = removal

        async def play(script: Script) -> None:
            await script.accept()
            await script.call("look")
            answer = await script.ask("open_store", pb.OpenStoreRequest(line=1))
            assert not answer.store_snapshot.entries
            await script.finish("read only")

        outcome = await bench.run(play)
    assert outcome.text.splitlines() == [OPENING, "read only", REMOVED]


@pytest.mark.spec("SCR-332", "SCR-333")
async def test_what_a_person_deletes_meanwhile_stays_deleted_but_for_what_is_stored_again(database):
    async with script_bench(database, [look()]) as bench:
        await bench.run(writing({"read": "1", "both": "1", "forgotten": "1"}))
        namespace = f"conv:{bench.conversation.id}"

        async def deletion(run):
            async with bench.database.connection() as connection:
                await scripts.forget(connection, bench.agent.id, namespace, None)
            return text_result("deleted")

        bench.tools[0]._run = deletion

        async def play(script: Script) -> None:
            await script.accept()
            answer = await script.ask("open_store", pb.OpenStoreRequest(line=1))
            assert len(answer.store_snapshot.entries) == 3
            await script.call("look")
            await script.finish(
                "ran", writes=[pb.StoreWrite(key="both", json="2"), pb.StoreWrite(key="forgotten")]
            )

        assert (await bench.run(play)).text == "ran"
        assert await kept(bench) == {"both": "2"}
