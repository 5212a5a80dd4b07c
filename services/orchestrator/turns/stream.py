"""The live events of one run, for any number of watchers.

A stream is a log in memory with sequence numbers. A watcher reads the log from where it stands, so
one that joins late, or comes back, gets what happened before and then what happens, with nothing
lost or doubled between. Neighbouring pieces of text are handed out as one when a watcher is behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from crew.v1 import events_pb2

from services.common.errors import LimitReached

# Distinct events a watcher may be behind before it is cut off (GTW-275).
WAITING_LIMIT = 256

# After one of these nothing follows (TRN-321).
LAST_EVENTS = frozenset({"done", "halted", "error", "approval_required", "queued"})
# Only for the one who sent the message (GTW-135).
_PRIVATE = frozenset({"user_context", "tool_call_delta"})


class TurnStream:
    """The events of one run, from its beginning or its resumption to its end or pause."""

    def __init__(self, conversation_id: str, run_id: str, *, first_seq: int = 1) -> None:
        self.conversation_id = conversation_id
        self.run_id = run_id
        self.ended = False
        # Whether the last event told how it ended; a stream that was abandoned has none.
        self.concluded = False
        self._log: list[events_pb2.TurnEvent] = []
        self._first_seq = first_seq
        self._grown = asyncio.Event()

    @property
    def next_seq(self) -> int:
        """The number that the next event will get."""
        return self._first_seq + len(self._log)

    def publish(self, event: events_pb2.TurnEvent) -> None:
        """Add an event; fills in conversation, run and number."""
        if self.ended:
            return
        event.conversation_id = self.conversation_id
        event.run_id = self.run_id
        event.seq = self.next_seq
        self._log.append(event)
        if event.WhichOneof("event") in LAST_EVENTS:
            self.ended = self.concluded = True
        self._wake()

    def abandon(self) -> None:
        """End the stream without a last event: the turn goes on elsewhere, or was lost."""
        self.ended = True
        self._wake()

    async def over(self) -> str | None:
        """Wait for the end; the kind of the last event, None when the stream was abandoned."""
        while not self.ended:
            await self._grown.wait()
        return self._log[-1].WhichOneof("event") if self.concluded else None

    async def events(
        self, *, after: int | None = None, private: bool = False
    ) -> AsyncIterator[events_pb2.TurnEvent]:
        """Every event behind number `after`, then those that come, until the stream ends.

        Args:
            after: Number of the last event seen; None for all.
            private: Whether the watcher is the one who sent the message.

        Raises:
            LimitReached: The watcher is more than `WAITING_LIMIT` events behind.
        """
        at = 0 if after is None else max(0, min(after + 1 - self._first_seq, len(self._log)))
        caught_up = False
        while True:
            if at >= len(self._log):
                if self.ended:
                    return
                caught_up = True
                grown = self._grown
                await grown.wait()
                continue
            if caught_up and len(self._log) - at > WAITING_LIMIT and self._groups(at) > WAITING_LIMIT:
                raise LimitReached("WATCHER_TOO_SLOW", "error.watcher_too_slow", limit=WAITING_LIMIT)
            event, at = self._next(at)
            if private or event.WhichOneof("event") not in _PRIVATE:
                yield event

    def _next(self, at: int) -> tuple[events_pb2.TurnEvent, int]:
        event = self._log[at]
        end = at + 1
        if event.WhichOneof("event") != "text_delta":
            return event, end
        while end < len(self._log) and self._log[end].WhichOneof("event") == "text_delta":
            end += 1
        if end == at + 1:
            return event, end
        merged = events_pb2.TurnEvent()
        merged.CopyFrom(self._log[end - 1])
        merged.text_delta.text = "".join(each.text_delta.text for each in self._log[at:end])
        return merged, end

    def _groups(self, at: int) -> int:
        count = 0
        while at < len(self._log) and count <= WAITING_LIMIT:
            _, at = self._next(at)
            count += 1
        return count

    def _wake(self) -> None:
        self._grown.set()
        self._grown = asyncio.Event()


class Streams:
    """The streams of the conversations whose turns run here, and of those that just ended."""

    # How long an ended stream can still be resumed by its last event id, in seconds.
    KEPT_SECONDS = 30.0

    def __init__(self) -> None:
        self._streams: dict[str, TurnStream] = {}
        self._opened = asyncio.Event()

    def open(self, conversation_id: str, run_id: str) -> TurnStream:
        """Begin the stream of a run; numbers go on where the same run's stream ended before."""
        before = self._streams.get(conversation_id)
        first = before.next_seq if before and before.run_id == run_id else 1
        stream = TurnStream(conversation_id, run_id, first_seq=first)
        self._streams[conversation_id] = stream
        self._opened.set()
        self._opened = asyncio.Event()
        return stream

    def live(self, conversation_id: str) -> TurnStream | None:
        """The stream of the turn that runs now, or None."""
        stream = self._streams.get(conversation_id)
        return stream if stream and not stream.ended else None

    def of_run(self, conversation_id: str, run_id: str) -> TurnStream | None:
        """The stream of that run, if it is the conversation's last and still kept."""
        stream = self._streams.get(conversation_id)
        return stream if stream and stream.run_id == run_id else None

    async def wait(self, conversation_id: str) -> TurnStream:
        """The running stream, or the next one that begins."""
        while True:
            opened = self._opened
            if stream := self.live(conversation_id):
                return stream
            await opened.wait()

    def forget_later(self, stream: TurnStream) -> None:
        """Drop an ended stream after `KEPT_SECONDS`, unless another took its place."""
        asyncio.get_running_loop().call_later(self.KEPT_SECONDS, self._forget, stream)

    def _forget(self, stream: TurnStream) -> None:
        if self._streams.get(stream.conversation_id) is stream:
            del self._streams[stream.conversation_id]
