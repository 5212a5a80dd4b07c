"""The acceptance cases of turns.md by number: those in which the model's answers are scripted."""

from __future__ import annotations

from typing import Any

import pytest

from services.common.toolhost.contract import Run, ToolError, ToolResult, text_result
from tests.fixtures.added_host import added_host
from tests.fixtures.model_server import ModelServer, Turn, call, refuse, text, turn
from tests.fixtures.postgres import ScratchDatabase
from tests.integration.acceptance.web import Web, of_kind, routed, web_of
from tests.unit.orchestrator.calls.parts import Scripted

ANYTHING = {"type": "object", "additionalProperties": True}
SAME = ("workspace_list", {"path": "."})


def priced(cost: float | None) -> dict[str, Any]:
    """Usage with this price, or without one."""
    tokens = {"prompt_tokens": 100, "completion_tokens": 10}
    return tokens if cost is None else {**tokens, "cost": cost}


async def listing(web: Web, model_server: ModelServer) -> tuple[str, list[dict[str, Any]]]:
    """Case 19: a model that always makes the same call, and what came of it."""
    (web.crew.workspace / "marked.txt").write_text("x")
    model_server.play(*[call(*SAME) for _ in range(6)], text("from the strong one"))
    conversation_id = await web.open()
    return conversation_id, await web.send(conversation_id, "go")


async def test_case_19_the_same_call_over_and_over_halts_the_turn(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    async with web_of(database, environ=routed(model_server)) as web:
        conversation_id, frames = await listing(web, model_server)
        results = of_kind(frames, "tool_result")
        assert [frame["ok"] for frame in results] == [True] * 5 + [False]
        messages = (await web.get(conversation_id))["messages"]
        assert ["marked.txt" in text for text in await web.results(conversation_id)] == [True] * 5 + [False]
        third = [place for place, message in enumerate(messages) if message["role"] == "tool"][2]
        note = messages[third + 1]
        assert (note["role"], note["author"]) == ("user", "system")
        assert "workspace_list" in note["content"]
        assert "3" in note["content"]
        assert "marked.txt" not in note["content"]
        assert "path" not in note["content"]
        assert (frames[-1]["type"], frames[-1]["reason"]) == ("halted", "loop")
        assert len(model_server.requests) == 6


async def test_case_20_a_stuck_turn_goes_to_the_stronger_model(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    agent = "escalation_route: openai:strong\n"
    async with web_of(database, environ=routed(model_server), agent=agent) as web:
        conversation_id, frames = await listing(web, model_server)
        assert "another model" in (await web.results(conversation_id))[5]
        assert [request.body["model"] for request in model_server.requests] == ["test"] * 6 + ["strong"]
        [escalated] = of_kind(frames, "escalated")
        assert (escalated["reason"], escalated["route"]) == ("loop", "openai:strong")
        assert frames[-1]["type"] == "done"


async def test_case_21_the_calls_of_the_last_step_do_not_run(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    async with web_of(database, environ=routed(model_server), agent="max_steps: 2\n") as web:
        model_server.play(*[call("workspace_list", {"path": path}) for path in (".", "..")], text("next"))
        conversation_id = await web.open()
        frames = await web.send(conversation_id, "go")
        assert len(model_server.requests) == 2
        assert (frames[-1]["type"], frames[-1]["reason"]) == ("halted", "max_steps")
        results = await web.results(conversation_id)
        assert "out of steps" in results[1]
        await web.send(conversation_id, "go on")
        assert await web.results(conversation_id) == results


async def test_case_22_a_last_step_without_calls_is_done(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    async with web_of(database, environ=routed(model_server), agent="max_steps: 2\n") as web:
        model_server.play(call(*SAME), text("that is all"))
        assert (await web.send(await web.open(), "go"))[-1]["type"] == "done"
        assert len(model_server.requests) == 2


async def test_case_23_a_route_without_credit_gives_way_at_once(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    async with web_of(database, environ=routed(model_server, "first", "second")) as web:
        model_server.play(refuse(402), text("from the second"))
        conversation_id = await web.open()
        frames = await web.send(conversation_id, "go")
        assert len(of_kind(frames, "route_fallback")) == 1
        assert [request.body["model"] for request in model_server.requests] == ["first", "second"]
        [run] = await web.runs(conversation_id)
        assert [step["kind"] for step in run["steps"]] == ["fallback", "model"]
        assert (await web.get(conversation_id))["messages"][1]["content"] == "from the second"


async def test_case_24_a_passing_failure_is_asked_again_on_the_same_route(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    async with web_of(database, environ=routed(model_server)) as web:
        model_server.play(refuse(503), text("fine"))
        frames = await web.send(await web.open(), "go")
        first, second = model_server.requests
        assert 1.9 <= second.at - first.at < 30
        assert of_kind(frames, "route_fallback") == []
        assert frames[-1]["type"] == "done"


async def test_case_25_what_was_shown_is_never_hidden_by_a_second_try(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    async with web_of(database, environ=routed(model_server)) as web:
        model_server.play(turn({"text": "Half of it", "pieces": 1}, {"drop": True}))
        frames = await web.send(await web.open(), "go")
        assert frames[-1]["type"] == "error"
        assert len(model_server.requests) == 1
        assert [frame["text"] for frame in of_kind(frames, "text_delta")] == ["Half of it"]


@pytest.mark.parametrize(("price", "unknown"), [(None, 1), (0, 0)])
async def test_case_26_no_price_is_unknown_and_zero_is_a_price(
    database: ScratchDatabase, model_server: ModelServer, price: float | None, unknown: int
) -> None:
    async with web_of(database, environ=routed(model_server)) as web:
        model_server.play(text("hello", usage=priced(price)))
        conversation_id = await web.open()
        await web.send(conversation_id, "go")
        shown = await web.get(conversation_id)
        assert shown["messages"][1]["cost_usd"] == price
        assert (shown["unknown_cost_calls"], shown["spent_usd"]) == (unknown, 0)


async def test_case_27_a_spent_cap_halts_and_a_raised_one_lets_it_go_on(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    async with web_of(database, environ=routed(model_server)) as web:
        model_server.play(call(*SAME, usage=priced(0.02)), text("hello"))
        conversation_id = await web.open(cost_cap_usd=0.01)
        frames = await web.send(conversation_id, "go")
        assert [frame["ok"] for frame in of_kind(frames, "tool_result")] == [True]
        assert (frames[-1]["type"], frames[-1]["reason"]) == ("halted", "budget")
        assert len(model_server.requests) == 1
        assert (await web.get(conversation_id))["over_budget"] is True
        await web.patch(conversation_id, 422, cost_cap_usd=-1)
        assert (await web.patch(conversation_id, cost_cap_usd=1))["over_budget"] is False
        assert (await web.send(conversation_id, "again"))[-1]["type"] == "done"


async def say(run: Run) -> ToolResult:
    if run.arguments.get("fail"):
        raise ToolError(run.arguments["text"])
    return text_result(str(run.arguments["text"]))


async def steps_of(
    database: ScratchDatabase, model_server: ModelServer, *turns: Turn
) -> list[dict[str, Any]]:
    """The tool steps of a turn in which the model makes these calls of the tool ``say``."""
    async with (
        added_host([Scripted("say", say, parameters=ANYTHING)]) as config,
        web_of(database, config=config, environ=routed(model_server)) as web,
    ):
        model_server.play(*turns, text("done"))
        conversation_id = await web.open()
        await web.send(conversation_id, "go")
        [run] = await web.runs(conversation_id)
        return [step for step in run["steps"] if step["kind"] == "tool"]


async def test_case_28_a_step_keeps_both_ends_of_an_error_and_the_head_of_a_success(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    long, short, good = "a" * 300 + "b" * 400, "c" * 600, "d" * 500
    calls = [call("say", {"text": words, "fail": words is not good}) for words in (long, short, good)]
    outputs = [step["output"] for step in await steps_of(database, model_server, *calls)]
    assert outputs == ["a" * 200 + "…" + "b" * 400, short, "d" * 160 + "…"]
    assert [len(output) for output in outputs] == [601, 600, 161]


async def test_case_29_a_step_keeps_twelve_arguments_and_says_how_many_are_left(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    arguments = {"text": "x"} | {f"n{number:02}": number for number in range(14)}
    [step] = await steps_of(database, model_server, call("say", arguments))
    assert len(step["arguments"]) == 13
    assert list(step["arguments"])[-1] == "…"
    assert step["arguments"]["…"].startswith("3 ")
