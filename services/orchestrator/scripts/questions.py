"""`llm.classify` and `llm.summarise`: one question of a script to its agent's own model (SCR-138 to 170).

The task stands in the system text, the script's text behind a fence it can not close. What the model
or its provider says in any other form than asked for reaches the run card and never the script.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from services.common.fence import fence_for
from services.common.wording import Locale, load
from services.orchestrator.agents.profile import Agent
from services.orchestrator.models.contract import ChatMessage, ModelError, ModelRequest, Reply, Route
from services.orchestrator.money.account import Account
from services.orchestrator.money.side_calls import SideCalls
from services.orchestrator.scripts.labels import chosen

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
    """For whom a question is asked, and who pays it."""

    agent: Agent
    account: Account
    # Whether a person is there, whose word about going on counts.
    attended: bool
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


class Questions:
    """Asks.

    Args:
        side_calls: Who is asked, and where it is paid.
    """

    def __init__(self, side_calls: SideCalls) -> None:
        self._side_calls = side_calls

    async def ask(self, question: Question, asker: Asker) -> Answer:
        """Ask the agent's first route, once more after a passing fault and nobody else (SCR-158, 160).

        Raises:
            BudgetSpent: No model was asked.
        """
        words, locale = load("orchestrator"), asker.locale
        try:
            reply = await self._side_calls.ask(
                self._request(question, asker), "script", asker.account, attended=asker.attended
            )
        except ModelError as error:
            text = words.text(locale, "scripts.llm.no_answer")
            shown = f"{text} {error.sentence(words, locale)}"
            return Answer(False, text, shown, None if error.abandoned else 0.0)
        return self._answer(question, reply, locale)

    def _request(self, question: Question, asker: Asker) -> ModelRequest:
        agent = asker.agent
        return ModelRequest(
            routes=[Route.parse(agent.routes[0])],
            system=self._task(question, asker.locale),
            messages=[ChatMessage("user", self._material(question, asker.locale))],
            reasoning="minimal" if agent.reasoning is not None else None,
            agent_id=agent.id,
            purpose="script",
            max_output_tokens=_MOST_TOKENS,
        )

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
