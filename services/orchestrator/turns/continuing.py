"""Going on with a reply that broke off after its first words (FLD-013)."""

from __future__ import annotations

from crew.v1 import events_pb2

from services.common.wording import Catalogue
from services.orchestrator.models.contract import BrokenOff
from services.orchestrator.turns.turn import Turn
from services.orchestrator.turns.views import message_view
from services.orchestrator.turns.writes import TurnWrites


class Continuing:
    """Asks a model once more to go on from what it had said, in turns that nobody attends.

    Where a person attends, the turn ends with the fault and they say whether it goes on.

    Args:
        writes: For the stored part and the step.
        catalogue: Sentences.
    """

    def __init__(self, *, writes: TurnWrites, catalogue: Catalogue) -> None:
        self._writes = writes
        self._catalogue = catalogue

    async def from_break(self, turn: Turn, broken: BrokenOff) -> bool:
        """Store what was said and a note to go on from there; False when the turn ends with the fault.

        Only words can be gone on with, never a call that had begun; once a turn, and only when it has a
        model call left after the broken one, which counts as one.
        """
        if (
            turn.attended
            or broken.had_calls
            or not broken.partial_text.strip()
            or turn.recorder.has("continued")
            or turn.model_calls + 1 >= turn.agent.max_steps
        ):
            return False
        sentence = broken.sentence(self._catalogue, turn.locale)
        if turn.model_step is not None:
            turn.recorder.close(turn.model_step, ms=broken.ms, error=sentence)
        step = turn.recorder.note("continued", route=str(broken.route), text=sentence)
        note = self._catalogue.text(turn.locale, "prompt.turn.go_on")
        message = await self._writes.broke_off(turn, broken.partial_text, note, broken.abandoned, step)
        turn.say(broken.partial_text)
        turn.continues_reply = True
        whole = events_pb2.AssistantMessage(message=message_view(message))
        turn.stream.publish(events_pb2.TurnEvent(assistant_message=whole))
        return True
