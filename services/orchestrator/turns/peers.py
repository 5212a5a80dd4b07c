"""Turns that another replica runs, watched through it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, Protocol

import grpc
import grpc.aio
import structlog
from crew.v1 import events_pb2, turns_pb2, turns_pb2_grpc

from services.common.errors import LimitReached
from services.orchestrator.turns.stream import LAST_EVENTS, WAITING_LIMIT

log = structlog.get_logger(__name__)

Connect = Callable[[str], grpc.aio.Channel]


class WatchedTurn(Protocol):
    """A turn as its watchers see it, wherever it runs."""

    conversation_id: str
    run_id: str
    # Whether the last event told how it ended; one that moved elsewhere, or was lost, has none.
    concluded: bool

    def events(
        self, *, after: int | None = None, private: bool = False
    ) -> AsyncIterator[events_pb2.TurnEvent]:
        """See `TurnStream.events`."""


class PeerTurn:
    """The events of a turn that runs in another replica; each reader has a call of its own to there.

    What is only for its sender (`private`) is not told to other replicas.
    """

    def __init__(self, stub: turns_pb2_grpc.TurnsAsyncStub, conversation_id: str, run_id: str) -> None:
        self.conversation_id = conversation_id
        self.run_id = run_id
        self.concluded = False
        self._stub = stub

    async def events(
        self, *, after: int | None = None, private: bool = False
    ) -> AsyncIterator[events_pb2.TurnEvent]:
        """Every event behind number `after`, then those that come, until the stream ends.

        Raises:
            LimitReached: The watcher is too far behind.
        """
        request = turns_pb2.WatchTurnRequest(conversation_id=self.conversation_id)
        if after is not None:
            request.last_event_id = f"{self.run_id}:{after}"
        call: Any = self._stub.Watch(request)
        try:
            if ("http-status", "204") in tuple(await call.initial_metadata() or ()):
                # It ended before it was asked about, and its end is stored.
                self.concluded = True
                return
            async for event in call:
                self.concluded = event.WhichOneof("event") in LAST_EVENTS
                yield event
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED:
                raise LimitReached(
                    "WATCHER_TOO_SLOW", "error.watcher_too_slow", limit=WAITING_LIMIT
                ) from None
            # The replica has gone: whoever takes the turn over has its next events.
            log.info("peer_turn_lost", conversation_id=self.conversation_id, code=error.code().name)
        finally:
            call.cancel()


class Peers:
    """The other replicas.

    Args:
        connect: Makes a channel to an address, with the token of this direction.
    """

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._channels: dict[str, grpc.aio.Channel] = {}

    def turn(self, address: str, conversation_id: str, run_id: str) -> PeerTurn:
        """The turn that the replica at `address` runs."""
        if address not in self._channels:
            self._channels[address] = self._connect(address)
        stub: Any = turns_pb2_grpc.TurnsStub(self._channels[address])
        return PeerTurn(stub, conversation_id, run_id)

    async def close(self) -> None:
        """End all channels."""
        for channel in self._channels.values():
            await channel.close()
        self._channels.clear()
