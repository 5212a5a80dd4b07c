"""What belongs to one run: its record, the messages between its mark and the next, its children."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from crew.v1 import runs_pb2

from services.common.errors import NotFound
from services.orchestrator.store import conversations, messages, runs
from services.orchestrator.store.pool import Connection, Database
from services.orchestrator.store.records import Message
from services.orchestrator.turns.recorder import run_message

# How the messages of a run were told from those of other runs.
Slice = Literal["by_mark", "by_time"]


@dataclass(frozen=True, slots=True)
class Collected:
    """A run with what was said in it."""

    run: runs_pb2.Run
    # Of its conversation; "" when that is gone.
    title: str
    slice: Slice
    messages: Sequence[Message]
    # Runs that its calls delegated, oldest first.
    children: Sequence[Collected] = ()


async def collect(database: Database, run_id: str) -> Collected:
    """Read a run as it is stored now, all of one moment.

    Raises:
        NotFound: No such run.
    """
    async with database.snapshot() as connection:
        run = await runs.get(connection, run_id)
        if run is None:
            raise NotFound("NO_RUN", "error.no_run", id=run_id)
        collected = await _with_messages(connection, run)
        call_ids = [call.id for message in collected.messages for call in message.tool_calls]
        children = [
            await _with_messages(connection, child)
            for child in await runs.delegated(connection, run, call_ids)
        ]
    return Collected(collected.run, collected.title, collected.slice, collected.messages, children)


async def _with_messages(connection: Connection, run: runs.Run) -> Collected:
    steps = await runs.steps(connection, [run.id])
    conversation = await conversations.get(connection, run.conversation_id)
    found: Sequence[Message]
    if run.after_seq is None:
        found = await messages.during(connection, run.conversation_id, run.started_at, run.finished_at)
    else:
        last = await runs.next_mark(connection, run)
        found = await messages.between(connection, run.conversation_id, run.after_seq, last)
    return Collected(
        run=run_message(run, steps[run.id]),
        title=conversation.title if conversation else "",
        slice="by_time" if run.after_seq is None else "by_mark",
        messages=found,
    )
