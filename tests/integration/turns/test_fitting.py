"""Prompts that no longer fit: older turns are summarised, a refusal for size is repeated once, or said."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest
from crew.v1 import agents_pb2, conversations_pb2, runs_pb2, turns_pb2

from tests.fixtures.crew import Crew, Events, names_of, running_crew, until
from tests.fixtures.model_server import ModelServer, RecordedRequest, Turn, call, refuse, text, turn
from tests.fixtures.postgres import ScratchDatabase

OVERFLOW = "This model's maximum context length is 20000 tokens. However, your messages are too long."
SUMMARY = "The person asked about ports; 8765 was found (turn 1)."
WINDOW = 20_000


def priced(prompt_tokens: int, cost: float | None = 0.001) -> Mapping[str, Any]:
    """Usage that reports so many prompt tokens."""
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 10}
    return usage if cost is None else {**usage, "cost": cost}


def answered(number: int, prompt_tokens: int = 3_000) -> Turn:
    """A reply to message `number`."""
    return text(f"Answer {number}.", usage=priced(prompt_tokens))


@asynccontextmanager
async def small(
    database: ScratchDatabase, server: ModelServer, *, window: int = WINDOW, config: str = ""
) -> AsyncIterator[Crew]:
    """A crew whose model takes `window` tokens."""
    server.models = [{"id": "test", "context_length": window}]
    environ = {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": server.base_url}
    async with running_crew(database, environ=environ, config=config) as crew:
        yield crew


async def talk(crew: Crew, server: ModelServer, turns: int, **fields: Any) -> str:
    """A conversation of so many answered messages."""
    conversation_id = await crew.open()
    for number in range(1, turns + 1):
        server.play(answered(number, **fields))
        await crew.send(conversation_id, f"Question {number}?")
    return conversation_id


def is_summary(request: RecordedRequest) -> bool:
    """Whether a request asks for a summary."""
    return "You condense the earlier part" in str(request.messages[0]["content"])


def contents(request: RecordedRequest) -> list[str]:
    """The texts of a prompt without the system text."""
    return [str(message["content"]) for message in request.messages[1:]]


def halted(events: Events) -> str:
    """The sentence with which a turn halted for its window."""
    assert events[-1].halted.reason == "context"
    return str(events[-1].halted.text)


def rows(database: ScratchDatabase, query: str) -> list[tuple[Any, ...]]:
    """What a query finds."""
    with psycopg.connect(database.url) as connection:
        return connection.execute(query).fetchall()


async def steps(crew: Crew, conversation_id: str) -> list[runs_pb2.RunStep]:
    """Of the newest run."""
    return list((await crew.last_run(conversation_id)).steps)


@pytest.mark.spec("FLD-003", "TRN-349", "TRN-263")
async def test_older_turns_become_one_summary_before_the_window_is_full(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    async with small(database, model_server) as crew:
        conversation_id = await talk(crew, model_server, 5)
        model_server.play(answered(6, 16_500), text(SUMMARY, usage=priced(900, 0.25)), answered(7))
        await crew.send(conversation_id, "Question 6?")
        before = await crew.get(conversation_id)
        events = await crew.send(conversation_id, "Question 7?")

        assert names_of(events) == ["compacted", "assistant_message", "done"]
        assert events[0].compacted.turns == 4
        asked, reply = model_server.requests[-2:]
        assert is_summary(asked)
        assert asked.body["model"] == "test"
        assert "tools" not in asked.body
        assert "Question 4?" in contents(asked)[0]
        assert "Question 5?" not in contents(asked)[0]
        told = contents(reply)
        assert "Turns 1 to 4" in told[0]
        assert SUMMARY in told[0]
        assert told[1:] == ["Question 5?", "Answer 5.", "Question 6?", "Answer 6.", "Question 7?"]

        after = await crew.get(conversation_id)
        assert list(after.messages[:12]) == list(before.messages)
        assert [message.content for message in after.messages[12:]] == ["Question 7?", "Answer 7."]
        assert after.spent_usd == pytest.approx(0.25 + 7 * 0.001)
        compacted = (await steps(crew, conversation_id))[0]
        assert (compacted.kind, compacted.name, compacted.route) == ("compacted", "full", "openai:test")
        assert (compacted.cost_usd, compacted.prompt_tokens) == (0.25, 900)
        assert "Turns 1 to 4" in compacted.text
        assert rows(database, "select purpose, model, cost_usd::float8 from side_calls") == [
            ("compact", "test", 0.25)
        ]


@pytest.mark.spec("FLD-003")
async def test_the_summary_stands_unchanged_until_the_next_and_survives_a_restart(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    async with small(database, model_server) as crew:
        conversation_id = await talk(crew, model_server, 5)
        model_server.play(answered(6, 16_500), text(SUMMARY), answered(7))
        await crew.send(conversation_id, "Question 6?")
        await crew.send(conversation_id, "Question 7?")
        await crew.end("orchestrator")
        await crew.start("orchestrator")
        model_server.play(answered(8, 17_000))
        await crew.send(conversation_id, "Question 8?")
        first, second = model_server.requests[-2:]
        assert second.messages[: len(first.messages)] == first.messages

        model_server.play(text("And then more happened."), answered(9))
        await crew.send(conversation_id, "Question 9?")
        asked, reply = model_server.requests[-2:]
        assert SUMMARY in contents(asked)[0]
        assert "Question 3?" not in contents(asked)[0]
        assert "Question 6?" in contents(asked)[0]
        assert "Turns 1 to 6" in contents(reply)[0]
        assert SUMMARY not in json.dumps(reply.messages)
        assert contents(reply)[1] == "Question 7?"


@pytest.mark.spec("FLD-003")
async def test_an_open_call_and_an_open_question_stay_whole_over_a_compaction(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    async with small(database, model_server) as crew:
        conversation_id = await talk(crew, model_server, 5)
        model_server.play(answered(6, 16_500), text(SUMMARY))
        await crew.send(conversation_id, "Question 6?")
        arguments = {"path": "a.txt", "content": "w" * 500}
        question = {"question": "Which one?", "options": ["a", "b"]}
        model_server.play(call("workspace_write", arguments, usage=priced(3_000)))
        model_server.play(call("ask_user", question, usage=priced(3_000)), answered(7))
        events = await crew.send(conversation_id, "Question 7?")
        assert names_of(events)[0] == "compacted"
        await crew.decide(await crew.pending(conversation_id), approve=True)
        answer = turns_pb2.AnswerQuestionRequest(
            conversation_id=conversation_id, approval_id=await crew.pending(conversation_id), answer="b"
        )
        events = await crew.read(crew.turns.Answer(answer))
        assert events[-1].done.text == "Answer 7."
        told = model_server.requests[-1].messages[1:]
        assert SUMMARY in told[0]["content"]
        writes, asks = (message for message in told if message.get("tool_calls"))
        assert json.loads(writes["tool_calls"][0]["function"]["arguments"]) == arguments
        assert json.loads(asks["tool_calls"][0]["function"]["arguments"]) == question
        assert [message["role"] for message in told[-4:]] == ["assistant", "tool", "assistant", "tool"]
        assert "b" in told[-1]["content"]
        assert sum(is_summary(request) for request in model_server.requests) == 1


@pytest.mark.spec("FLD-003")
async def test_three_turns_stay_whole_however_full_the_window_is(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    async with small(database, model_server) as crew:
        conversation_id = await talk(crew, model_server, 2, prompt_tokens=19_000)
        model_server.play(answered(3))
        events = await crew.send(conversation_id, "Question 3?")
        assert names_of(events) == ["assistant_message", "done"]
        assert contents(model_server.requests[-1])[0] == "Question 1?"
        assert not any(is_summary(request) for request in model_server.requests)


@pytest.mark.spec("FLD-003")
@pytest.mark.parametrize("answer", [refuse(500), text("  "), refuse(400, OVERFLOW)])
async def test_without_a_summary_the_turn_goes_on_with_everything(
    database: ScratchDatabase, model_server: ModelServer, answer: Turn
) -> None:
    async with small(database, model_server) as crew:
        conversation_id = await talk(crew, model_server, 5)
        again = [answer] if answer.status == 500 else []
        model_server.play(answered(6, 17_000), answer, *again, call("workspace_list", {"path": "."}))
        model_server.play(answered(7))
        await crew.send(conversation_id, "Question 6?")
        events = await crew.send(conversation_id, "Question 7?")
        assert events[-1].done.text == "Answer 7."
        assert contents(model_server.requests[-1])[0] == "Question 1?"
        # Asked for once a turn, not once a step.
        assert sum(is_summary(request) for request in model_server.requests) == 1 + len(again)
        kinds = [(step.kind, bool(step.error)) for step in await steps(crew, conversation_id)]
        assert kinds[0] == ("compacted", True)
        assert [kind for kind, _ in kinds] == ["compacted", "model", "tool", "model"]


@pytest.mark.spec("FLD-003", "TRN-109", "TRN-262")
async def test_a_summary_that_spends_the_cap_ends_the_turn_before_the_next_call(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    async with small(database, model_server) as crew:
        conversation_id = await talk(crew, model_server, 5)
        model_server.play(answered(6, 17_000), text(SUMMARY, usage=priced(900, 5.0)))
        await crew.send(conversation_id, "Question 6?")
        events = await crew.send(conversation_id, "Question 7?")
        assert events[-1].halted.reason == "budget"
        assert is_summary(model_server.requests[-1])


@pytest.mark.spec("FLD-003", "FLD-016")
async def test_a_summary_is_paid_from_the_budgets(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    config = "cost_cap_usd: 0\nbudgets: {crew: {day: 1.0}}\n"
    async with small(database, model_server, config=config) as crew:
        conversation_id = await talk(crew, model_server, 5)
        model_server.play(answered(6, 17_000), text(SUMMARY, usage=priced(900, 2.0)))
        await crew.send(conversation_id, "Question 6?")
        events = await crew.send(conversation_id, "Question 7?")
        assert names_of(events) == ["compacted", "approval_required"]
        assert events[-1].approval_required.approval.kind == "budget"
        assert is_summary(model_server.requests[-1])
        model_server.play(answered(7))
        events = await crew.decide(await crew.pending(conversation_id), approve=True)
        assert events[-1].done.text == "Answer 7."
        assert SUMMARY in contents(model_server.requests[-1])[0]


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.spec("FLD-004")
@pytest.mark.parametrize("refusal", [refuse(413), refuse(400, OVERFLOW)])
async def test_a_refusal_for_size_is_repeated_once_with_a_smaller_prompt(
    database: ScratchDatabase, model_server: ModelServer, refusal: Turn
) -> None:
    async with small(database, model_server) as crew:
        conversation_id = await talk(crew, model_server, 1)
        model_server.play(answered(2))
        await crew.send(conversation_id, "x" * 20_000)
        for number in range(3, 6):
            model_server.play(answered(number))
            await crew.send(conversation_id, f"Question {number}?")
        model_server.play(refusal, text(SUMMARY), answered(6))
        events = await crew.send(conversation_id, "Question 6?")
        assert names_of(events) == ["compacted", "assistant_message", "done"]
        refused, asked, repeated = model_server.requests[-3:]
        assert is_summary(asked)
        assert len(repeated.raw) < 0.8 * len(refused.raw)
        assert repeated.messages[-1] == refused.messages[-1]
        found = await steps(crew, conversation_id)
        assert [step.kind for step in found] == ["model", "compacted", "model"]
        assert found[0].error
        assert found[1].name == "refused"
        run = await crew.last_run(conversation_id)
        assert run.status == "done"


@pytest.mark.spec("FLD-004", "TRN-108")
async def test_the_second_refusal_of_a_call_halts_with_the_sizes_and_the_next_message_is_taken(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    async with small(database, model_server) as crew:
        conversation_id = await crew.open()
        model_server.play(answered(1))
        await crew.send(conversation_id, "x" * 20_000)
        for number in range(2, 5):
            model_server.play(answered(number))
            await crew.send(conversation_id, f"Question {number}?")
        asked_before = len(model_server.requests)
        model_server.play(refuse(400, OVERFLOW), text(SUMMARY), refuse(400, OVERFLOW))
        sentence = halted(await crew.send(conversation_id, "Question 5?"))
        assert len(model_server.requests) == asked_before + 3
        for word in ("openai:test", "20,000", "Instructions:", "tools:", "memory:", "history:"):
            assert word in sentence
        run = await crew.last_run(conversation_id)
        assert (run.status, run.summary) == ("halted", "context")
        model_server.play(answered(6))
        events = await crew.send(conversation_id, "Question 6?")
        assert events[-1].done.text == "Answer 6."


@pytest.mark.spec("FLD-004")
async def test_a_prompt_that_did_not_become_a_fifth_smaller_is_not_sent_again(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    async with small(database, model_server) as crew:
        conversation_id = await talk(crew, model_server, 4)
        asked_before = len(model_server.requests)
        model_server.play(refuse(413), text(SUMMARY))
        halted(await crew.send(conversation_id, "Question 5?"))
        assert len(model_server.requests) == asked_before + 2


@pytest.mark.spec("FLD-004")
async def test_without_older_turns_a_refusal_halts_at_once(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    async with small(database, model_server) as crew:
        model_server.play(refuse(413))
        conversation_id = await crew.open()
        halted(await crew.send(conversation_id, "Question 1?"))
        assert len(model_server.requests) == 1
        assert [step.kind for step in await steps(crew, conversation_id)] == ["model"]


@pytest.mark.spec("FLD-004")
async def test_a_later_call_of_the_turn_that_is_refused_too_halts_it(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    async with small(database, model_server) as crew:
        conversation_id = await crew.open()
        model_server.play(answered(1))
        await crew.send(conversation_id, "x" * 20_000)
        for number in range(2, 5):
            model_server.play(answered(number))
            await crew.send(conversation_id, f"Question {number}?")
        model_server.play(refuse(413), text(SUMMARY), call("workspace_list", {"path": "."}), refuse(413))
        asked_before = len(model_server.requests)
        halted(await crew.send(conversation_id, "Question 5?"))
        # Nothing older is left to summarise at the second call.
        assert len(model_server.requests) == asked_before + 4


@pytest.mark.spec("FLD-004")
async def test_a_cut_off_summary_leaves_the_turn_interrupted_and_the_log_whole(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    async with small(database, model_server) as crew:
        conversation_id = await talk(crew, model_server, 5)
        model_server.play(answered(6, 17_000), turn({"text": "The person"}, {"gate": "summary"}))
        await crew.send(conversation_id, "Question 6?")
        sending = crew.sending(conversation_id, "Question 7?")
        await model_server.gate("summary").reached()
        await crew.turns.Stop(turns_pb2.StopTurnRequest(conversation_id=conversation_id))
        await crew.read(sending)
        stored = await crew.get(conversation_id)
        assert [message.content for message in stored.messages][-1] == "Question 7?"
        assert stored.unknown_cost_calls == 1
        assert rows(database, "select 1 from compactions") == []
        model_server.play(text(SUMMARY), answered(8))
        events = await crew.send(conversation_id, "Question 8?")
        assert events[-1].done.text == "Answer 8."


@pytest.mark.spec("FLD-003")
async def test_a_process_that_ends_while_a_summary_is_written_loses_nothing(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    async with small(database, model_server) as crew:
        conversation_id = await talk(crew, model_server, 5)
        model_server.play(answered(6, 17_000), turn({"text": "The person"}, {"gate": "summary"}))
        await crew.send(conversation_id, "Question 6?")
        sending = crew.sending(conversation_id, "Question 7?")
        await model_server.gate("summary").reached()
        model_server.play(text(SUMMARY), answered(7))
        await crew.end("orchestrator")
        sending.cancel()
        await crew.start("orchestrator")

        async def done() -> bool:
            return (await crew.last_run(conversation_id)).status == "done"

        await until(done)
        stored = await crew.get(conversation_id)
        assert [message.content for message in stored.messages][-2:] == ["Question 7?", "Answer 7."]
        assert rows(database, "select upto_turn from compactions") == [(4,)]
        assert SUMMARY in contents(model_server.requests[-1])[0]


# --- what every prompt holds --------------------------------------------------------------------


@pytest.mark.spec("FLD-004")
async def test_no_model_is_asked_when_what_every_prompt_holds_fills_the_window(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    async with small(database, model_server, window=1_300) as crew:
        (crew.home / "users" / "owner").mkdir(parents=True, exist_ok=True)
        (crew.home / "users" / "owner" / "USER.md").write_text("m" * 3_900)
        shown = await crew.agents.Get(agents_pb2.GetAgentRequest(id="default"))
        warning = next(warning for warning in shown.warnings if "1,300" in warning)
        assert "memory: 1,3" in warning
        conversation_id = await crew.open()
        sentence = halted(await crew.send(conversation_id, "Question?"))
        assert model_server.requests == []
        assert "memory: 1,3" in sentence
        assert "tools: " in sentence
        run = await crew.last_run(conversation_id)
        assert (run.status, run.summary, list(run.steps)) == ("halted", "context", [])


@pytest.mark.spec("FLD-004")
async def test_the_smallest_window_of_the_routes_counts_and_half_of_it_is_a_warning(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    model_server.models = [
        {"id": "test", "context_length": 200_000},
        {"id": "little", "context_length": 1_300},
    ]
    environ = {"MY_AGENT_ROUTES": "openai:test,openai:little", "OPENAI_BASE_URL": model_server.base_url}
    async with running_crew(database, environ=environ) as crew:
        shown = await crew.agents.Get(agents_pb2.GetAgentRequest(id="default"))
        assert any("openai:little" in warning for warning in shown.warnings)
        conversation_id = await crew.open()
        assert "openai:little" in halted(await crew.send(conversation_id, "Question?"))


@pytest.mark.spec("FLD-003")
async def test_a_fork_is_told_the_summaries_made_before_its_end(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    async with small(database, model_server) as crew:
        conversation_id = await talk(crew, model_server, 5)
        model_server.play(answered(6, 16_500), text(SUMMARY), answered(7), answered(8))
        for number in (6, 7, 8):
            await crew.send(conversation_id, f"Question {number}?")
        stored = await crew.get(conversation_id)
        last = next(message for message in stored.messages if message.content == "Question 8?")
        forked = await crew.conversations.Fork(
            conversations_pb2.ForkConversationRequest(id=conversation_id, before_message_id=last.id)
        )
        model_server.play(answered(9))
        await crew.send(forked.conversation.id, "Question 8, differently?")
        told = contents(model_server.requests[-1])
        assert SUMMARY in told[0]
        assert told[-1] == "Question 8, differently?"
