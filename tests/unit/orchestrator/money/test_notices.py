"""When there is something to tell of a budget, and by what name."""

from __future__ import annotations

import pytest

from services.orchestrator.money.budgets import Standing
from services.orchestrator.money.notices import Cause, cause_of, setting_of
from services.orchestrator.store.spending import Budget


@pytest.mark.spec("FLD-016")
@pytest.mark.parametrize(
    ("limit", "spent", "go_on", "cause"),
    [
        (1.0, 0.79, None, None),
        (1.0, 0.8, None, "nearly_spent"),
        # Raised after somebody said to go on: it is another end that is near.
        (1.0, 0.8, True, "nearly_spent"),
        (1.0, 1.0, None, "spent"),
        (1.0, 1.0, False, "spent"),
        (1.0, 1.0, True, None),
        # Nothing may be spent at all, so nothing ran out.
        (0.0, 0.0, None, None),
    ],
)
def test_near_the_end_and_at_it_there_is_something_to_tell(
    limit: float, spent: float, go_on: bool | None, cause: Cause | None
) -> None:
    budget = Budget("crew", "", "day", limit)
    assert cause_of(Standing(budget, spent, 0, 0, go_on)) == cause


@pytest.mark.parametrize(
    ("budget", "setting"),
    [
        (Budget("crew", "", "month", 1), "crew.month"),
        (Budget("agent", "ann", "day", 1), "agents.ann.day"),
        (Budget("schedule", "ann/news", "month", 1), "schedules.ann/news.month"),
    ],
)
def test_a_budget_is_named_by_its_setting(budget: Budget, setting: str) -> None:
    assert setting_of(budget) == setting
