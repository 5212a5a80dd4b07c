"""Where running scripts stand, for the orchestrator that takes their turns over."""

from __future__ import annotations

from dataclasses import dataclass

from services.orchestrator.store.pool import Connection


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A script that stands at an answered request.

    Attributes:
        seq: Of the request.
        state: The paused program; means something to the sandbox alone.
        answer: What the request was answered with, as it went over the wire.
        progress: JSON text of whoever counts the script's calls.
    """

    seq: int
    state: bytes
    answer: bytes
    progress: str


async def keep(
    connection: Connection,
    call_id: str,
    checkpoint: Checkpoint,
    *,
    conversation_id: str,
    script_sha256: bytes,
) -> None:
    """Put `checkpoint` in the place of the one before."""
    await connection.execute(
        """
        insert into script_checkpoints
            (call_id, conversation_id, script_sha256, seq, state, answer, progress)
        values (%s, %s, %s, %s, %s, %s, %s)
        on conflict (call_id) do update set script_sha256 = excluded.script_sha256, seq = excluded.seq,
            state = excluded.state, answer = excluded.answer, progress = excluded.progress,
            updated_at = now()
        """,
        (
            call_id,
            conversation_id,
            script_sha256,
            checkpoint.seq,
            checkpoint.state,
            checkpoint.answer,
            checkpoint.progress,
        ),
    )


async def find(connection: Connection, call_id: str, script_sha256: bytes) -> Checkpoint | None:
    """The last checkpoint of a call's script, if it is this very script."""
    cursor = await connection.execute(
        """
        select seq, state, answer, progress from script_checkpoints
        where call_id = %s and script_sha256 = %s
        """,
        (call_id, script_sha256),
    )
    row = await cursor.fetchone()
    if row is None:
        return None
    return Checkpoint(row["seq"], bytes(row["state"]), bytes(row["answer"]), row["progress"])


async def forget(connection: Connection, call_id: str) -> None:
    """Drop the checkpoint of a script that has ended, and those that nobody took up within a day."""
    await connection.execute(
        "delete from script_checkpoints where call_id = %s or updated_at < now() - interval '1 day'",
        (call_id,),
    )
