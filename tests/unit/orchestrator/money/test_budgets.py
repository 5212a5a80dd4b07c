"""Budgets as the settings give them, and how they stand."""

from __future__ import annotations

import pytest

from services.common.settings.config import AgentBudget, Budgets, CrewBudget
from services.orchestrator.money.account import Account
from services.orchestrator.money.budgets import (
    Standing,
    budgets_of,
    paying,
    standings,
    unknown_agents,
)
from services.orchestrator.store.spending import Budget, Spent

CREW = Budget("crew", "", "day", 5.0)


def test_each_limit_is_a_budget_and_no_limit_is_none() -> None:
    settings = Budgets(
        crew=CrewBudget(month=50.0),
        agents={"ann": AgentBudget(day=1.0), "bob": AgentBudget()},
        schedules={"ann/news": AgentBudget(day=0.0)},
    )
    assert budgets_of(settings) == (
        CREW,
        Budget("crew", "", "month", 50.0),
        Budget("agent", "ann", "day", 1.0),
        Budget("schedule", "ann/news", "day", 0.0),
    )
    assert budgets_of(Budgets(crew=CrewBudget(day=None))) == ()
    assert unknown_agents(settings, ["default", "ann"]) == ["bob"]


@pytest.mark.spec("FLD-016")
@pytest.mark.parametrize(
    ("account", "scopes"),
    [
        (Account("ann"), ["crew", "agent"]),
        (Account("ann", source="chat"), ["crew", "agent"]),
        (Account("ann", source="job:ann/news"), ["crew", "agent", "schedule"]),
        (Account("bob", source="job:bob/news"), ["crew"]),
        # A label of a program that only looks like a job's.
        (Account("bob", source="api:job:ann/news"), ["crew"]),
    ],
)
def test_a_call_is_paid_from_every_budget_that_covers_it(account: Account, scopes: list[str]) -> None:
    budgets = [CREW, Budget("agent", "ann", "day", 1), Budget("schedule", "ann/news", "month", 1)]
    assert [budget.scope for budget in paying(budgets, account)] == scopes


@pytest.mark.spec("FLD-016")
@pytest.mark.parametrize(
    ("spent", "reserved", "state", "left"),
    [
        (0.0, 0.0, "free", 5.0),
        (3.99, 0.5, "free", 0.51),
        (4.0, 0.0, "near", 1.0),
        (4.0, 1.5, "near", 0.0),
        (4.97, 0.03, "near", 0.0),
        (5.0, 0.0, "spent", 0.0),
        (7.5, 0.0, "spent", 0.0),
    ],
)
def test_how_a_budget_stands(spent: float, reserved: float, state: str, left: float) -> None:
    standing = Standing(CREW, spent, reserved, 0)
    assert (standing.state, standing.left_usd) == (state, pytest.approx(left))


def test_a_budget_of_nothing_is_spent_from_the_start() -> None:
    assert Standing(Budget("crew", "", "day", 0.0), 0.0, 0.0, 0).state == "spent"


def test_days_and_months_are_told_apart_and_answers_belong_to_one_budget() -> None:
    spent = [
        Spent("ann", "", day_usd=1, month_usd=10, reserved_usd=0.25, unknown_day=1, unknown_month=4),
        Spent("ann", "ann/news", day_usd=2, month_usd=20, reserved_usd=0.5, unknown_day=0, unknown_month=1),
        Spent("bob", "", day_usd=4, month_usd=40, reserved_usd=0, unknown_day=0, unknown_month=0),
    ]
    budgets = [CREW, Budget("agent", "ann", "month", 100), Budget("schedule", "ann/news", "day", 9)]
    found = standings(budgets, spent, {("agent", "ann", "month"): False})
    assert [(s.spent_usd, s.reserved_usd, s.unknown_cost_calls, s.go_on) for s in found] == [
        (7, 0.75, 1, None),
        (30, 0.75, 5, False),
        (2, 0.5, 0, None),
    ]
