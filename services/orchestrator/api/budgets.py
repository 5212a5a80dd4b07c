"""The service crew.v1.Budgets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import grpc.aio
from crew.v1 import budgets_pb2 as pb
from crew.v1 import budgets_pb2_grpc

from services.common.times import day_in
from services.orchestrator.access.principal import principal_of
from services.orchestrator.money.budgets import Standing
from services.orchestrator.money.treasury import Treasury

Context = grpc.aio.ServicerContext[Any, Any]


class BudgetsServicer(budgets_pb2_grpc.BudgetsServicer):
    """How the budgets stand, and the person's word about going on."""

    def __init__(self, treasury: Treasury, *, timezone: str) -> None:
        self._treasury = treasury
        self._timezone = timezone

    async def List(self, request: pb.BudgetsRequest, context: Context) -> pb.BudgetsReply:
        """Every budget that has a limit, in the order of config.yaml (FLD-016)."""
        return self._reply(await self._treasury.standings())

    async def GoOn(self, request: pb.GoOnRequest, context: Context) -> pb.BudgetsReply:
        """Whether attended turns go on today past the budgets that are spent now."""
        by = principal_of(context).decider
        return self._reply(await self._treasury.answer_spent(go_on=request.go_on, by=by))

    def _reply(self, standings: Sequence[Standing]) -> pb.BudgetsReply:
        return pb.BudgetsReply(
            budgets=[_view(standing) for standing in standings],
            day=day_in(self._timezone).isoformat(),
            timezone=self._timezone,
        )


def _view(standing: Standing) -> pb.Budget:
    view = pb.Budget(
        scope=standing.budget.scope,
        id=standing.budget.id,
        period=standing.budget.period,
        limit_usd=standing.budget.limit_usd,
        spent_usd=standing.spent_usd,
        reserved_usd=standing.reserved_usd,
        unknown_cost_calls=standing.unknown_cost_calls,
        state=standing.state,
    )
    if standing.go_on is not None:
        view.go_on_today = standing.go_on
    return view
