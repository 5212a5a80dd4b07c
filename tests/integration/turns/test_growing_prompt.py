"""The prompt grows at its end: what a provider has read once stays as it was, and what moves is named."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import pytest
from crew.v1 import stats_pb2, stats_pb2_grpc

from tests.fixtures.crew import Crew, running_crew
from tests.fixtures.model_server import ModelServer, RecordedRequest, Script, Turn, call, shared_prefix, text
from tests.fixtures.postgres import ScratchDatabase

LONG = "x" * 600


class CachingProvider(Script):
    """Bills by the longest prefix that an earlier request had marked, as providers that cache on request."""

    def __init__(self) -> None:
        super().__init__()
        self.marked: set[str] = set()
        self.shares: list[float] = []
        self.markers: list[int] = []

    def choose(self, body: Mapping[str, Any]) -> Turn:
        """The next turn in line, with the usage that this request has."""
        digest, size, cached, marks = hashlib.sha256(), 0, 0, []
        for block in _blocks(body):
            marked = block.pop("cache_control", None) is not None
            raw = json.dumps(block).encode()
            digest.update(raw)
            size += len(raw)
            if digest.hexdigest() in self.marked:
                cached = size
            if marked:
                marks.append(digest.hexdigest())
        self.marked.update(marks)
        self.markers.append(len(marks))
        self.shares.append(cached / size)
        played = super().choose(body)
        usage = {
            "prompt_tokens": size // 4,
            "completion_tokens": 5,
            "cost": 0.0,
            "prompt_tokens_details": {"cached_tokens": cached // 4},
        }
        return Turn(steps=played.steps, usage=usage)


def _blocks(body: Mapping[str, Any]) -> Sequence[dict[str, Any]]:
    """The prompt in the order in which it is read."""
    blocks = [dict(tool) for tool in body["tools"]]
    for message in body["messages"]:
        rest = {name: value for name, value in message.items() if name != "content"}
        content = message["content"]
        parts = content if isinstance(content, list) else [{"text": content}]
        blocks += [{**rest, **part} for part in parts]
    return blocks


async def prompt_use(crew: Crew) -> stats_pb2.PromptUse:
    """What the statistics say of the only agent."""
    stats = crew.stub(stats_pb2_grpc.StatsStub)
    [use] = (await stats.Prompts(stats_pb2.PromptStatsRequest())).uses
    return use


@pytest.mark.spec("FLD-012", "AGT-168")
async def test_a_provider_that_caches_on_request_reads_nine_tenths_from_its_cache(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    provider = CachingProvider()
    model_server.script = provider
    environ = {
        "MY_AGENT_ROUTES": "openrouter:anthropic/claude",
        "OPENROUTER_BASE_URL": model_server.base_url,
        "OPENROUTER_API_KEY": "sk-or-0123456789",
    }
    async with running_crew(database, environ=environ) as crew:
        for number in range(10):
            (crew.workspace / f"{number}.txt").write_text(LONG)
        model_server.play(
            *[call("workspace_read", {"path": f"{number}.txt"}) for number in range(9)], text("Ok.")
        )
        conversation_id = await crew.open()
        await crew.send(conversation_id, "Read them one by one.")
        assert len(provider.shares) == 10
        assert min(provider.shares[1:]) >= 0.9
        assert max(provider.markers) == 4
        use = await prompt_use(crew)
        assert use.calls == 10
        assert use.cached_tokens >= 0.85 * use.prompt_tokens
        assert list(use.moved) == []


@pytest.mark.spec("FLD-012", "AGT-171")
async def test_a_model_step_names_what_moved_and_statistics_count_it(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    environ = {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": model_server.base_url}
    async with running_crew(database, environ=environ, config="language: en\n") as crew:
        conversation_id = await crew.open()

        async def moved() -> list[list[str]]:
            await crew.send(conversation_id, "Hello")
            run = await crew.last_run(conversation_id)
            return [list(step.moved) for step in run.steps if step.kind == "model"]

        assert await moved() == [[]]
        assert await moved() == [[]]
        (crew.home / "SOUL.md").write_text("I am calm.")
        assert await moved() == [["persona"]]
        (crew.home / "users" / "owner").mkdir(parents=True, exist_ok=True)
        (crew.home / "users" / "owner" / "USER.md").write_text("Lan, early riser.")
        await crew.end("orchestrator")
        await crew.start("orchestrator")
        assert await moved() == [["user"]]
        await crew.end("orchestrator")
        (crew.home / "agent.yaml").write_text("tools: [workspace_read]\n")
        await crew.start("orchestrator")
        model_server.play(call("workspace_read", {"path": "none.txt"}), text("Gone."))
        assert await moved() == [["tools"], []]
        assert {count.name: count.count for count in (await prompt_use(crew)).moved} == {
            "persona": 1,
            "user": 1,
            "tools": 1,
        }


@pytest.mark.spec("TRN-100", "AGT-138")
async def test_an_edited_persona_counts_from_the_next_turn_on(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    environ = {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": model_server.base_url}
    async with running_crew(database, environ=environ) as crew:
        conversation_id = await crew.open()
        (crew.home / "SOUL.md").write_text("I am calm.")
        gate = model_server.gate("held")
        model_server.play(
            Turn(steps=({"gate": "held"}, {"call": {"name": "workspace_list", "arguments": {"path": "."}}})),
            text("Done."),
            text("Again."),
        )
        sending = crew.sending(conversation_id, "Go")
        await gate.reached()
        (crew.home / "SOUL.md").write_text("I am new.")
        gate.release()
        await crew.read(sending)
        await crew.send(conversation_id, "And now?")
        told = ["I am new." in request.messages[0]["content"] for request in model_server.requests]
        assert told == [False, False, True]


@pytest.mark.spec("TRN-099")
async def test_a_step_takes_steers_then_looks_at_the_budget_then_asks_then_stores_then_runs(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    environ = {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": model_server.base_url}
    async with running_crew(database, environ=environ) as crew:
        held = {"gate": "held"}
        listing = {"call": {"name": "workspace_list", "arguments": {"path": "."}}}
        model_server.play(
            Turn(steps=(held, listing), usage={"prompt_tokens": 1, "cost": 0.4}), text("Not asked.")
        )
        conversation_id = await crew.open(cost_cap_usd=0.3)
        sending = crew.sending(conversation_id, "Go")
        await model_server.gate("held").reached()
        await crew.send(conversation_id, "/steer this way")
        model_server.gate("held").release()
        events = await crew.read(sending)
        # The calls of the first step ran, the steer was taken, and only then was the cap looked at.
        assert events[-1].halted.reason == "budget"
        assert len(model_server.requests) == 1
        [request] = model_server.requests
        assert request.messages[0]["role"] == "system"
        assert request.messages[1:] == [{"role": "user", "content": "Go"}]
        assert "workspace_list" in request.tool_names
        stored = await crew.get(conversation_id)
        assert [(message.role, message.author) for message in stored.messages] == [
            ("user", "person"),
            ("assistant", "agent"),
            ("tool", "tool"),
            ("user", "person"),
        ]
        assert stored.messages[-1].content == "this way"


def unchanged(requests: Sequence[RecordedRequest]) -> list[float]:
    """For each request the part of its messages that begins the next one."""
    return [shared_prefix(before, after) for before, after in pairwise(requests)]


@pytest.mark.spec("TRN-121", "TRN-171")
async def test_thirty_turns_with_tools_steering_and_notes_keep_what_was_sent(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    environ = {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": model_server.base_url}
    async with running_crew(database, environ=environ, agent="max_steps: 20\n") as crew:
        for number in range(30):
            (crew.workspace / f"{number}.txt").write_text(f"{number} {LONG}")
        conversation_id = await crew.open()
        for number in range(30):
            await _turn(crew, model_server, conversation_id, number)
        requests = model_server.requests
        sent = [str(message["content"]) for message in requests[-1].messages]
        assert sum(message["role"] == "tool" for message in requests[-1].messages) == 39
        assert sum("rather like this" in words for words in sent) == 9
        assert sum("times in a row" in words for words in sent) == 3
        assert len(requests) == 69
        assert min(unchanged(requests)) >= 0.99


async def _turn(crew: Crew, server: ModelServer, conversation_id: str, number: int) -> None:
    """One of the thirty: a call at least; every third is steered, every tenth goes in circles."""
    read = call("workspace_read", {"path": f"{number}.txt"})
    if number % 10 == 9:
        server.play(*[call("workspace_list", {"path": "."})] * 4, text(f"Done {number}."))
        await crew.send(conversation_id, f"Task {number}")
    elif number % 3 == 0:
        gate = f"turn {number}"
        held = Turn(steps=({"gate": gate}, *read.steps))
        server.play(held, text(f"Answer {number}."))
        sending = crew.sending(conversation_id, f"Task {number}")
        await server.gate(gate).reached()
        await crew.send(conversation_id, f"/steer rather like this, {number}")
        server.gate(gate).release()
        await crew.read(sending)
    else:
        server.play(read, text(f"Answer {number}."))
        await crew.send(conversation_id, f"Task {number}")
