"""The question whether to go on today although budgets are spent, and budgets in words (FLD-016)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from services.common.wording import Catalogue, Locale
from services.orchestrator.money.budgets import Standing
from services.orchestrator.store.records import Approval
from services.orchestrator.store.spending import Budget

# What the request is named after, where a call's is named after its tool.
NAME = "budget"


def arguments(standings: Sequence[Standing]) -> str:
    """The budgets a request is about, as its JSON arguments."""
    budgets: list[dict[str, Any]] = [
        {
            "scope": standing.budget.scope,
            "id": standing.budget.id,
            "period": standing.budget.period,
            "limit_usd": standing.budget.limit_usd,
            "spent_usd": round(standing.spent_usd, 4),
        }
        for standing in standings
    ]
    return orjson.dumps({"budgets": budgets}).decode()


def asked_about(approval: Approval) -> list[Budget]:
    """The budgets that a request was about."""
    return [
        Budget(entry["scope"], entry["id"], entry["period"], entry["limit_usd"])
        for entry in orjson.loads(approval.arguments)["budgets"]
    ]


def in_words(catalogue: Catalogue, locale: Locale, standings: Sequence[Standing]) -> str:
    """Which budgets, each with its limit and what is spent; unpriced calls are told apart."""
    return "; ".join(_one(catalogue, locale, standing) for standing in standings)


def _one(catalogue: Catalogue, locale: Locale, standing: Standing) -> str:
    budget = standing.budget
    text = catalogue.text(
        locale,
        f"money.budget.{budget.scope}.{budget.period}",
        id=budget.id,
        limit=_usd(budget.limit_usd),
        spent=_usd(standing.spent_usd),
    )
    if standing.unknown_cost_calls:
        text += catalogue.text(locale, "money.budget.and_unpriced", calls=standing.unknown_cost_calls)
    return text


def _usd(amount: float) -> str:
    """Cents, and parts of a cent where there is little else."""
    return f"{amount:.2f}" if amount == 0 or amount >= 0.1 else f"{amount:.4f}"
