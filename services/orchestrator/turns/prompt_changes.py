"""What moved in the stable front of a conversation's prompt since its last model call (FLD-012)."""

from __future__ import annotations

from collections.abc import Sequence

from services.orchestrator.context.system import SystemPrompt, moved_parts
from services.orchestrator.store import prompt_parts, turns
from services.orchestrator.store.pool import Database
from services.orchestrator.turns.turn import Turn


class PromptChanges:
    """Compares each prompt with the one before it, also across turns and processes.

    Args:
        database: Keeps what the last prompt was.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def told(self, turn: Turn, prompt: SystemPrompt) -> Sequence[str]:
        """Note what a model was told; the names of the parts that differ from the call before."""
        digests = prompt.digests
        if turn.told_digests is None:
            async with self._database.connection() as connection:
                turn.told_digests = await prompt_parts.last(connection, turn.conversation_id)
        moved = moved_parts(turn.told_digests, digests) if turn.told_digests is not None else []
        if digests != turn.told_digests:
            async with self._database.transaction() as connection:
                await turns.hold(connection, turn.claim)
                await prompt_parts.keep(connection, turn.conversation_id, digests)
            turn.told_digests = digests
        return moved
