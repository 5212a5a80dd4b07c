"""Handing a turn that is stuck to the agent's stronger model, once (TRN-172 to 182)."""

from __future__ import annotations

from crew.v1 import events_pb2, runs_pb2

from services.common.wording import Catalogue
from services.orchestrator.models.contract import AllRoutesFailed, Route
from services.orchestrator.turns.turn import Turn
from services.orchestrator.turns.writes import TurnWrites


class Escalation:
    """Moves turns to the escalation route of their agent.

    Args:
        writes: For the run step.
        catalogue: Sentences for what failed.
    """

    def __init__(self, writes: TurnWrites, catalogue: Catalogue) -> None:
        self._writes = writes
        self._catalogue = catalogue

    async def possible(self, turn: Turn) -> bool:
        """Whether the agent has the route, this turn has not used it, and a call is left (TRN-179)."""
        if turn.agent.escalation_route is None or turn.escalated:
            return False
        if turn.model_calls >= turn.agent.max_steps:
            return False
        return not (turn.conversation.over_budget and (await self._writes.reread(turn)).over_budget)

    async def from_loop(self, turn: Turn) -> None:
        """Hand over a turn that the loop guard was about to halt; its calls have their results."""
        step = self._begin(turn, "loop")
        await self._writes.step(turn, step)
        self._show(turn, step)

    async def from_failure(self, turn: Turn, failed: AllRoutesFailed) -> bool:
        """Hand over a turn whose model call failed on every route, which counts as a step (TRN-176).

        Returns:
            False when nothing was changed, since the turn can not be handed over.
        """
        turn.model_calls += 1
        if not await self.possible(turn):
            turn.model_calls -= 1
            return False
        step = self._begin(turn, "error", failed.sentence(self._catalogue, turn.locale))
        await self._writes.failed_over(turn, failed.abandoned, step)
        self._show(turn, step)
        return True

    @staticmethod
    def _begin(turn: Turn, reason: str, error: str | None = None) -> runs_pb2.RunStep:
        route = turn.agent.escalation_route
        assert route is not None
        turn.escalated, turn.routes = True, [Route.parse(route)]
        turn.served_by = None
        turn.guard.restart()
        return turn.recorder.note("escalation", route=route, text=reason, error=error)

    @staticmethod
    def _show(turn: Turn, step: runs_pb2.RunStep) -> None:
        escalated = events_pb2.Escalated(reason=step.text, route=step.route, error=step.error)
        turn.stream.publish(events_pb2.TurnEvent(escalated=escalated))
