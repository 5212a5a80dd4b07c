"""Asking the second model, for a few seconds."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import structlog

from services.common.wording import Locale
from services.orchestrator.calls.review.answer import read_answer
from services.orchestrator.calls.review.contract import Judgement, ReviewRequest, Seen, Silence
from services.orchestrator.calls.review.prompt import review_request
from services.orchestrator.models.contract import ModelError, Reply, Route
from services.orchestrator.models.facade import Models
from services.orchestrator.money.account import Account
from services.orchestrator.money.side_calls import BudgetSpent, SideCalls

REVIEW_SECONDS = 3.0
# What a reviewer is not given: nobody reads so much in three seconds.
MOST_CHARS = 100_000

_log = structlog.get_logger(__name__)


class Reviewer:
    """Has calls judged.

    Args:
        models: Knows which routes can be asked.
        side_calls: Asks them, and writes each into the ledger (PIP-103).
        seconds: How long an answer may take (PIP-101).
    """

    def __init__(self, models: Models, side_calls: SideCalls, *, seconds: float = REVIEW_SECONDS) -> None:
        self._models = models
        self._side_calls = side_calls
        self._seconds = seconds

    async def judge(
        self, request: ReviewRequest, seen: Seen, account: Account, *, attended: bool, locale: Locale
    ) -> Judgement:
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
        asked = review_request(request, seen, agent_id=account.agent_id, route=route, locale=locale)
        silence: Silence
        try:
            async with asyncio.timeout(self._seconds):
                reply = await self._side_calls.ask(asked, "review", account, attended=attended)
        except TimeoutError:
            silence = "late"
        except BudgetSpent:
            silence = "budget"
        except ModelError as error:
            _log.warning("review_failed", route=str(route), error=error.key)
            silence = "failed"
        except Exception:
            _log.exception("review_failed", route=str(route))
            silence = "failed"
        else:
            return replace(self._read(reply, route, locale), ms=_since(began))
        return Judgement("none", route, silence=silence, ms=_since(began))

    def _read(self, reply: Reply, route: Route, locale: Locale) -> Judgement:
        judgement = Judgement(
            "none",
            route,
            silence="unreadable",
            usage=reply.usage,
            cost_usd=reply.cost_usd,
            unknown_cost_calls=(1 if reply.cost_usd is None else 0) + len(reply.abandoned),
        )
        # A reply that was cut, or that calls tools, is none that was asked for.
        whole = reply.finish_reason != "length" and not reply.calls
        answer = read_answer(reply.text, locale) if whole else None
        if answer is None:
            return judgement
        return replace(
            judgement, verdict=answer.verdict, reason=answer.reason, instead=answer.instead, silence=None
        )


def _since(began: float) -> int:
    return round((time.monotonic() - began) * 1000)
