"""A turn that is stuck goes to the agent's stronger model, once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.fixtures.crew import Crew, names_of, running_crew
from tests.fixtures.model_server import ModelServer, call, refuse, text, turn
from tests.fixtures.postgres import ScratchDatabase

SAME = ("workspace_list", {"path": "."})
PRICE = {"prompt_tokens": 100, "completion_tokens": 10, "cost": 0.001}


@asynccontextmanager
async def escalating(database: ScratchDatabase, server: ModelServer, **more: str) -> AsyncIterator[Crew]:
    """A crew of one agent with a weak and a strong model; `more` are further keys of its file."""
    keys = {"escalation_route": "openai:strong", **more}
    agent = "".join(f"{key}: {value}\n" for key, value in keys.items())
    environ = {"MY_AGENT_ROUTES": "openai:weak", "OPENAI_BASE_URL": server.base_url}
    async with running_crew(database, agent=agent, environ=environ) as crew:
        yield crew


def asked(server: ModelServer) -> list[str]:
    """The models in the order they were asked."""
    return [request.body["model"] for request in server.requests]


@pytest.mark.spec("TRN-172", "TRN-175", "TRN-180", "TRN-182")
async def test_a_loop_is_handed_to_the_strong_model(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    async with escalating(database, model_server) as crew:
        model_server.play(*[call(*SAME) for _ in range(6)], text("Found another way."), text("Again."))
        conversation_id = await crew.open()
        events = await crew.send(conversation_id, "start")
        assert asked(model_server) == ["weak"] * 6 + ["strong"]
        escalated = next(event.escalated for event in events if event.HasField("escalated"))
        assert (escalated.reason, escalated.route, escalated.error) == ("loop", "openai:strong", "")
        assert events[-1].done.text == "Found another way."
        results = [event.tool_result for event in events if event.HasField("tool_result")]
        assert [result.ok for result in results] == [True] * 5 + [False]
        refusal = model_server.requests[6].messages[-1]
        assert refusal["role"] == "tool"
        assert "handed to another model" in refusal["content"]
        run = await crew.last_run(conversation_id)
        assert [step.kind for step in run.steps][-3:] == ["tool", "escalation", "model"]
        assert (run.steps[-2].route, run.steps[-2].text) == ("openai:strong", "loop")
        await crew.send(conversation_id, "next")
        assert asked(model_server)[-1] == "weak"


@pytest.mark.spec("TRN-176", "TRN-182", "TRN-242")
async def test_a_call_that_failed_everywhere_is_asked_again_of_the_strong_model(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    async with escalating(database, model_server) as crew:
        model_server.play(refuse(402, "no money"), text("Here."))
        conversation_id = await crew.open()
        events = await crew.send(conversation_id, "start")
        assert names_of(events) == ["route_fallback", "escalated", "assistant_message", "done"]
        assert events[1].escalated.reason == "error"
        assert "openai:weak" in events[1].escalated.error
        assert events[-1].done.steps == 2
        first, second = model_server.requests
        assert (first.messages, first.tool_names) == (second.messages, second.tool_names)
        run = await crew.last_run(conversation_id)
        assert [step.kind for step in run.steps] == ["fallback", "escalation", "model"]
        assert run.steps[1].error == events[1].escalated.error


@pytest.mark.spec("TRN-178")
async def test_a_turn_escalates_once_and_stays_there(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    async with escalating(database, model_server) as crew:
        model_server.play(refuse(402, "no"), *[call(*SAME) for _ in range(6)])
        conversation_id = await crew.open()
        events = await crew.send(conversation_id, "start")
        assert asked(model_server) == ["weak"] + ["strong"] * 6
        assert [name for name in names_of(events) if name == "escalated"] == ["escalated"]
        assert events[-1].halted.reason == "loop"
        model_server.play(*[call(*SAME) for _ in range(6)], refuse(402, "no"))
        events = await crew.send(conversation_id, "again")
        assert names_of(events)[-1] == "error"
        assert asked(model_server)[7:] == ["weak"] * 6 + ["strong"]


@pytest.mark.spec("TRN-156", "TRN-178")
async def test_a_resumed_turn_is_back_on_its_routes_and_does_not_escalate_again(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    async with escalating(database, model_server) as crew:
        model_server.play(
            refuse(402, "no"),
            call("workspace_write", {"path": "a.txt", "content": "1"}),
            refuse(402, "no"),
        )
        conversation_id = await crew.open()
        await crew.send(conversation_id, "start")
        events = await crew.decide(await crew.pending(conversation_id), approve=True)
        assert asked(model_server) == ["weak", "strong", "weak"]
        assert names_of(events)[-1] == "error"
        assert "escalated" not in names_of(events)


@pytest.mark.spec("TRN-179")
async def test_nothing_is_handed_over_without_a_step_left(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    async with escalating(database, model_server, max_steps="6") as crew:
        model_server.play(*[call(*SAME) for _ in range(5)], refuse(402, "no"))
        conversation_id = await crew.open()
        events = await crew.send(conversation_id, "start")
        assert names_of(events)[-1] == "error"
        assert asked(model_server) == ["weak"] * 6


@pytest.mark.spec("TRN-179")
async def test_nothing_is_handed_over_when_the_budget_is_spent(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    async with escalating(database, model_server) as crew:
        model_server.play(*[call(*SAME, usage=PRICE) for _ in range(6)])
        conversation_id = await crew.open(cost_cap_usd=0.006)
        events = await crew.send(conversation_id, "start")
        assert events[-1].halted.reason == "loop"
        assert asked(model_server) == ["weak"] * 6


@pytest.mark.spec("TRN-176", "TRN-239")
async def test_what_was_shown_is_not_asked_of_another_model(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    async with escalating(database, model_server) as crew:
        model_server.play(turn({"text": "Half an "}, {"drop": True}))
        events = await crew.send(await crew.open(), "start")
        assert names_of(events)[-1] == "error"
        assert asked(model_server) == ["weak"]


@pytest.mark.spec("TRN-181")
async def test_the_strong_model_is_asked_with_the_agents_own_effort(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    async with escalating(database, model_server, reasoning="high") as crew:
        model_server.play(refuse(402, "no"), text("Here."))
        await crew.send(await crew.open(), "start")
        weak, strong = model_server.requests
        assert {**weak.body, "model": "strong"} == strong.body


@pytest.mark.spec("TRN-172")
async def test_without_the_key_a_loop_ends_the_turn(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    environ = {"MY_AGENT_ROUTES": "openai:weak", "OPENAI_BASE_URL": model_server.base_url}
    async with running_crew(database, environ=environ) as crew:
        model_server.play(*[call(*SAME) for _ in range(6)])
        events = await crew.send(await crew.open(), "start")
        assert events[-1].halted.reason == "loop"
        assert len(model_server.requests) == 6
