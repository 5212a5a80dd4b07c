"""The budgets of ``config.yaml`` and how they stand (FLD-016)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from services.common.settings.config import AgentBudget, Budgets
from services.orchestrator.money.account import Account
from services.orchestrator.store.spending import Budget, Period, Scope, Spent

# From this part of a budget on the owner is told.
NEAR = 0.8

State = Literal["free", "near", "spent"]


@dataclass(frozen=True, slots=True)
class Standing:
    """A budget in its present day or month."""

    budget: Budget
    spent_usd: float
    # Promised to model calls that run now.
    reserved_usd: float
    unknown_cost_calls: int
    # What the person said for today about going on past it; None: nothing.
    go_on: bool | None = None

    @property
    def state(self) -> State:
        """How much of it is gone; promises do not count."""
        if self.spent_usd >= self.budget.limit_usd:
            return "spent"
        return "near" if self.spent_usd >= NEAR * self.budget.limit_usd else "free"

    @property
    def left_usd(self) -> float:
        """What may still be promised; never negative, and nothing when it is less than a millionth."""
        return max(0.0, round(self.budget.limit_usd - self.spent_usd - self.reserved_usd, 6))


def budgets_of(settings: Budgets) -> tuple[Budget, ...]:
    """The budgets that have a limit: the crew's, then agents' and schedules' as they are written."""
    found: list[Budget] = []
    found += _periods("crew", "", settings.crew)
    for agent_id, budget in settings.agents.items():
        found += _periods("agent", agent_id, budget)
    for schedule, budget in settings.schedules.items():
        found += _periods("schedule", schedule, budget)
    return tuple(found)


def unknown_agents(settings: Budgets, agent_ids: Collection[str]) -> list[str]:
    """Agents that have a budget and do not exist: most likely misspelt, so that nothing holds them."""
    return [agent_id for agent_id in settings.agents if agent_id not in agent_ids]


def covers(budget: Budget, agent_id: str, schedule: str) -> bool:
    """Whether what this agent spends for this schedule is paid from the budget."""
    match budget.scope:
        case "crew":
            return True
        case "agent":
            return budget.id == agent_id
        case "schedule":
            return budget.id == schedule


def standings(
    budgets: Iterable[Budget],
    spent: Sequence[Spent],
    answers: Mapping[tuple[Scope, str, Period], bool],
) -> list[Standing]:
    """How each budget stands, of what was spent and promised in this month."""
    found = []
    for budget in budgets:
        mine = [entry for entry in spent if covers(budget, entry.agent_id, entry.schedule)]
        by_day = budget.period == "day"
        unknown = sum(entry.unknown_day if by_day else entry.unknown_month for entry in mine)
        found.append(
            Standing(
                budget,
                spent_usd=sum(entry.day_usd if by_day else entry.month_usd for entry in mine),
                reserved_usd=sum(entry.reserved_usd for entry in mine),
                unknown_cost_calls=unknown,
                go_on=answers.get((budget.scope, budget.id, budget.period)),
            )
        )
    return found


def paying(budgets: Iterable[Budget], account: Account) -> list[Budget]:
    """The budgets that a call of this account is paid from."""
    return [budget for budget in budgets if covers(budget, account.agent_id, account.schedule)]


def _periods(scope: Scope, scope_id: str, budget: AgentBudget) -> list[Budget]:
    limits: dict[Period, float | None] = {"day": budget.day, "month": budget.month}
    return [Budget(scope, scope_id, period, limit) for period, limit in limits.items() if limit is not None]
