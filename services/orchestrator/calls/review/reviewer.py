"""Asking the second model, for a few seconds."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from dataclasses import replace

import structlog

from services.common.wording import Locale
from services.orchestrator.calls.review.answer import read_answer
from services.orchestrator.calls.review.contract import Judgement, ReviewRequest, Seen, Silence, Spent
from services.orchestrator.calls.review.prompt import review_request
from services.orchestrator.models.contract import Completed, ModelError, ModelRequest, Reply, Route, Served
from services.orchestrator.models.facade import Models

REVIEW_SECONDS = 3.0
# What a reviewer is not given: nobody reads so much in three seconds.
MOST_CHARS = 100_000

_log = structlog.get_logger(__name__)


class Reviewer:
    """Has calls judged.

    Args:
        models: The providers behind their routes.
        seconds: How long an answer may take (PIP-101).
    """

    def __init__(self, models: Models, *, seconds: float = REVIEW_SECONDS) -> None:
        self._models = models
        self._seconds = seconds

    async def judge(self, request: ReviewRequest, seen: Seen, *, agent_id: str, locale: Locale) -> Judgement:
        """The judgement on one call; never raises but for being cancelled.

        No answer in time, an unreadable one or an error is a judgement without a verdict.
        """
        route = Route.parse(request.rule.route)
        if len(request.arguments_json) > MOST_CHARS:
            return Judgement("none", route, silence="too_long")
        # `Models` would ask the crew's own routes in its place: another judge than the owner chose.
        if route not in self._models.usable([route]):
            return Judgement("none", route, silence="unusable")
        began = time.monotonic()
        asked = _Asked()
        silence: Silence
        try:
            async with asyncio.timeout(self._seconds):
                reply = await asked.ask(
                    self._models,
                    review_request(request, seen, agent_id=agent_id, route=route, locale=locale),
                )
        except TimeoutError:
            silence = "late"
        except ModelError as error:
            _log.warning("review_failed", route=str(route), error=error.key)
            silence = "failed"
        except Exception:
            _log.exception("review_failed", route=str(route))
            silence = "failed"
        else:
            return replace(self._read(reply, route, locale), ms=_since(began))
        return Judgement("none", route, silence=silence, spent=asked.spent, ms=_since(began))

    def _read(self, reply: Reply, route: Route, locale: Locale) -> Judgement:
        spent = Spent(reply.usage, reply.cost_usd, len(reply.abandoned))
        # A reply that was cut, or that calls tools, is none that was asked for.
        whole = reply.finish_reason != "length" and not reply.calls
        answer = read_answer(reply.text, locale) if whole else None
        if answer is None:
            return Judgement("none", route, silence="unreadable", spent=spent)
        return Judgement(answer.verdict, route, answer.reason, answer.instead, spent=spent)


class _Asked:
    """One model call, and whether it has begun to cost something."""

    def __init__(self) -> None:
        self.spent: Spent | None = None

    async def ask(self, models: Models, request: ModelRequest) -> Reply:
        async with aclosing(models.stream(request)) as events:
            async for event in events:
                match event:
                    case Served():
                        self.spent = Spent()
                    case Completed(reply=reply):
                        return reply
                    case _:
                        pass
        raise AssertionError("a stream of model events ends with Completed or raises")


def _since(began: float) -> int:
    return round((time.monotonic() - began) * 1000)
