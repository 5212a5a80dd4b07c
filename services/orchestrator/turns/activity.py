"""The live view over all runs: a snapshot, then a frame at each step boundary (TRN-286 to 289)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from crew.v1 import runs_pb2

# Frames a watcher may leave unread before it is cut off.
FRAME_LIMIT = 256


class Activity:
    """Fans frames out to watchers; a frame is a copy that nothing changes later."""

    def __init__(self) -> None:
        self._live: dict[str, runs_pb2.Run] = {}
        self._watchers: set[asyncio.Queue[runs_pb2.ActivityFrame | None]] = set()

    @property
    def watchers(self) -> int:
        """How many watch now."""
        return len(self._watchers)

    def live(self, run_id: str) -> runs_pb2.Run | None:
        """A run as it is now, its open steps included; None when it is not live here."""
        return self._live.get(run_id)

    def run_changed(self, run: runs_pb2.Run) -> None:
        """A run began, paused, went on or ended."""
        copy = runs_pb2.Run()
        copy.CopyFrom(run)
        if run.status in ("running", "awaiting_approval"):
            self._live[run.id] = copy
        else:
            self._live.pop(run.id, None)
        self._broadcast(runs_pb2.ActivityFrame(run=runs_pb2.RunFrame(run=copy)))

    def step_changed(self, run: runs_pb2.Run, step: runs_pb2.RunStep) -> None:
        """A step began or ended."""
        if (live := self._live.get(run.id)) is not None:
            live.CopyFrom(run)
        frame = runs_pb2.RunEventFrame(run_id=run.id, conversation_id=run.conversation_id)
        frame.step.CopyFrom(step)
        self._broadcast(runs_pb2.ActivityFrame(event=frame))

    def conversation_changed(self, conversation_id: str, *, title: str = "", removed: bool = False) -> None:
        """A conversation was opened, renamed or removed."""
        self._broadcast(
            runs_pb2.ActivityFrame(
                conversation=runs_pb2.ConversationFrame(
                    conversation_id=conversation_id, title=title, removed=removed
                )
            )
        )

    def notified(self, frame: runs_pb2.NotificationFrame) -> None:
        """The owner was told something, or has read it."""
        self._broadcast(runs_pb2.ActivityFrame(notification=frame))

    def forget(self, run_id: str) -> None:
        """A run is not live here any more and nobody is to be told."""
        self._live.pop(run_id, None)

    async def frames(self) -> AsyncIterator[runs_pb2.ActivityFrame]:
        """A snapshot of every live run, then what happens; ends when the reader falls behind."""
        waiting: asyncio.Queue[runs_pb2.ActivityFrame | None] = asyncio.Queue(FRAME_LIMIT + 1)
        snapshot = runs_pb2.ActivitySnapshot()
        for run in self._live.values():
            snapshot.runs.add().CopyFrom(run)
        self._watchers.add(waiting)
        try:
            yield runs_pb2.ActivityFrame(snapshot=snapshot)
            while (frame := await waiting.get()) is not None:
                yield frame
        finally:
            self._watchers.discard(waiting)

    def _broadcast(self, frame: runs_pb2.ActivityFrame) -> None:
        for waiting in list(self._watchers):
            if waiting.qsize() >= FRAME_LIMIT:
                # Cut off: it reconnects to a fresh snapshot. The end is the last thing it reads.
                self._watchers.discard(waiting)
                waiting.put_nowait(None)
            else:
                waiting.put_nowait(frame)
