"""Telling the owner that a budget is nearly spent, or spent (FLD-016)."""

from __future__ import annotations

from typing import Literal

from services.common.wording import Catalogue, Locale
from services.orchestrator.money.budgets import Standing
from services.orchestrator.money.question import in_words
from services.orchestrator.store import notifications
from services.orchestrator.store.pool import Connection
from services.orchestrator.store.spending import Budget, Scope

Cause = Literal["nearly_spent", "spent"]

_SECTIONS: dict[Scope, str] = {"agent": "agents", "schedule": "schedules"}


class BudgetNotices:
    """Writes notifications about budgets.

    Args:
        catalogue: Sentences.
        locale: Of everything the crew says.
    """

    def __init__(self, catalogue: Catalogue, locale: Locale) -> None:
        self._catalogue = catalogue
        self._locale: Locale = locale

    async def tell(self, connection: Connection, standing: Standing) -> Cause | None:
        """Tell how a budget stands, once in its day or month, however many processes look at it.

        Returns:
            What was told. None when there is nothing to tell: it was told in this period, there is enough
            left, nothing may be spent from it at all, or the owner knows and said to go on.
        """
        cause = cause_of(standing)
        if cause is None:
            return None
        budget = in_words(self._catalogue, self._locale, [standing])
        first = await notifications.tell_of_budget(
            connection,
            standing.budget,
            cause=cause,
            subject=setting_of(standing.budget),
            text=self._catalogue.text(self._locale, f"money.notice.{cause}", budget=budget),
        )
        return cause if first else None


def cause_of(standing: Standing) -> Cause | None:
    """What there is to tell of a budget; None: nothing."""
    if standing.budget.limit_usd <= 0:
        return None
    match standing.state:
        case "free":
            return None
        case "near":
            return "nearly_spent"
        case "spent":
            return None if standing.go_on else "spent"


def setting_of(budget: Budget) -> str:
    """Where a budget is set below ``budgets:`` in config.yaml, such as ``agents.researcher.day``."""
    section = _SECTIONS.get(budget.scope, budget.scope)
    return ".".join(part for part in (section, budget.id, budget.period) if part)
