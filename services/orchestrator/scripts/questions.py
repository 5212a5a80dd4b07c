"""`llm.classify` and `llm.summarise`: one question of a script to its agent's own model (SCR-138 to 170).

The task stands in the system text, the script's text behind a fence it can not close. What the model
or its provider says in any other form than asked for reaches the run card and never the script.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Literal

from services.common.fence import fence_for
from services.common.wording import Locale, load
from services.orchestrator.agents.profile import Agent
from services.orchestrator.models.contract import (
    ChatMessage,
    Completed,
    ModelError,
    ModelRequest,
    Reply,
    Route,
    Served,
)
from services.orchestrator.models.facade import Models
from services.orchestrator.scripts.labels import chosen
from services.orchestrator.store import ledger
from services.orchestrator.store.pool import Database
from services.orchestrator.store.records import Usage

Kind = Literal["classify", "summarise"]

# Of the reply: room for a summary of the longest allowed size, and for thinking that counts as output.
_MOST_TOKENS = 8_000


@dataclass(frozen=True, slots=True)
class Question:
    """What a script asks; checked already."""

    kind: Kind
    text: str
    labels: Sequence[str] = ()
    max_chars: int = 0


@dataclass(frozen=True, slots=True)
class Asker:
    """For whom a question is asked, and where its price goes."""

    agent: Agent
    # None: of a job.
    conversation_id: str | None
    run_id: str | None
    locale: Locale


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a question.

    Attributes:
        ok: `text` is what the script receives; else it is the error it can catch.
        shown: For the run card: with what the model or its provider said.
        cost_usd: None: it reached a model and nobody knows the price.
    """

    ok: bool
    text: str
    shown: str
    cost_usd: float | None


@dataclass(slots=True)
class _Reached:
    """The route that has begun to answer, if any has."""

    route: Route | None = field(default=None)


class Questions:
    """Asks.

    Args:
        models: Who is asked.
        database: Of the ledger.
    """

    def __init__(self, models: Models, database: Database) -> None:
        self._models = models
        self._database = database

    async def ask(self, question: Question, asker: Asker) -> Answer:
        """Ask the agent's first route, once more after a passing fault and nobody else (SCR-158, 160)."""
        words, locale = load("orchestrator"), asker.locale
        reached = _Reached()
        try:
            reply = await self._reply(question, asker, reached)
        except asyncio.CancelledError:
            # The turn was stopped: what the model was asked is paid all the same (SCR-359).
            if reached.route is not None:
                await asyncio.shield(self._enter(asker, reached.route, None))
            raise
        except ModelError as error:
            for route in error.abandoned:
                await self._enter(asker, route, None)
            text = words.text(locale, "scripts.llm.no_answer")
            shown = f"{text} {error.sentence(words, locale)}"
            return Answer(False, text, shown, None if error.abandoned else 0.0)
        for route in reply.abandoned:
            await self._enter(asker, route, None)
        await self._enter(asker, reply.route, reply)
        return self._answer(question, reply, locale)

    async def _reply(self, question: Question, asker: Asker, reached: _Reached) -> Reply:
        agent = asker.agent
        request = ModelRequest(
            routes=[Route.parse(agent.routes[0])],
            system=self._task(question, asker.locale),
            messages=[ChatMessage("user", self._material(question, asker.locale))],
            reasoning="minimal" if agent.reasoning is not None else None,
            agent_id=agent.id,
            purpose="script",
            max_output_tokens=_MOST_TOKENS,
        )
        async with aclosing(self._models.stream(request)) as events:
            async for event in events:
                match event:
                    case Served(route=route):
                        reached.route = route
                    case Completed(reply=reply):
                        return reply
        raise AssertionError("a stream of a model ends with its reply or an error")

    def _task(self, question: Question, locale: Locale) -> str:
        words = load("orchestrator")
        if question.kind == "summarise":
            return words.text(locale, "prompt.script.summarise", max_chars=question.max_chars).strip()
        listed = "\n".join(f"- {' '.join(label.split())}" for label in question.labels)
        return words.text(locale, "prompt.script.classify", labels=listed).strip()

    def _material(self, question: Question, locale: Locale) -> str:
        label = load("orchestrator").text(locale, "prompt.script.fence")
        return fence_for(question.text, label).around(question.text)

    def _answer(self, question: Question, reply: Reply, locale: Locale) -> Answer:
        said = reply.text.strip()
        if question.kind == "summarise":
            given = said[: question.max_chars].strip() or None
            key = "empty"
        else:
            given = chosen(said, question.labels)
            key = "unclear"
        if given is not None:
            return Answer(True, given, given, reply.cost_usd)
        text = load("orchestrator").text(locale, f"scripts.llm.{key}")
        return Answer(False, text, f"{text} {said}".strip(), reply.cost_usd)

    async def _enter(self, asker: Asker, route: Route, reply: Reply | None) -> None:
        """Add the call to the ledger; without a reply its price is unknown."""
        usage = Usage()
        if reply is not None:
            usage = Usage(
                prompt_tokens=reply.usage.prompt_tokens,
                completion_tokens=reply.usage.completion_tokens,
                cached_tokens=reply.usage.cached_tokens,
                reasoning_tokens=reply.usage.reasoning_tokens,
            )
        async with self._database.connection() as connection:
            await ledger.record(
                connection,
                "script",
                agent_id=asker.agent.id,
                conversation_id=asker.conversation_id,
                run_id=asker.run_id,
                provider=route.provider,
                model=route.model,
                usage=usage,
                cost_usd=reply.cost_usd if reply is not None else None,
            )
