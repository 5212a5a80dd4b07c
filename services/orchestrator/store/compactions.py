"""Summaries that stand for the older turns of a conversation in its prompt (FLD-003)."""

from __future__ import annotations

from dataclasses import dataclass

from services.orchestrator.store.pool import Connection


@dataclass(frozen=True, slots=True)
class Compaction:
    """One summary. The newest of a conversation stands for everything the ones before it stood for."""

    # The last message and the last turn it stands for.
    upto_seq: int
    upto_turn: int
    # The last message there was when it was made.
    made_after_seq: int
    # As the model is told it, never rewritten.
    told: str


async def add(connection: Connection, conversation_id: str, run_id: str, compaction: Compaction) -> None:
    """Let a summary stand from the next prompt on."""
    await connection.execute(
        """
        insert into compactions (conversation_id, upto_seq, upto_turn, made_after_seq, told, run_id)
        values (%s, %s, %s, %s, %s, %s)
        """,
        (
            conversation_id,
            compaction.upto_seq,
            compaction.upto_turn,
            compaction.made_after_seq,
            compaction.told,
            run_id,
        ),
    )


async def standing(connection: Connection, conversation_id: str) -> Compaction | None:
    """The summary that stands now; None when every message is told."""
    cursor = await connection.execute(
        """
        select upto_seq, upto_turn, made_after_seq, told from compactions
        where conversation_id = %s order by upto_seq desc limit 1
        """,
        (conversation_id,),
    )
    row = await cursor.fetchone()
    return Compaction(**row) if row else None


async def copy_before(connection: Connection, source_id: str, target_id: str, before_seq: int) -> None:
    """Give the copied beginning of a log the summaries that were made before its end."""
    await connection.execute(
        """
        insert into compactions (conversation_id, upto_seq, upto_turn, made_after_seq, told, created_at)
        select %(target)s, upto_seq, upto_turn, made_after_seq, told, created_at
        from compactions where conversation_id = %(source)s and made_after_seq < %(before)s
        """,
        {"source": source_id, "target": target_id, "before": before_seq},
    )
