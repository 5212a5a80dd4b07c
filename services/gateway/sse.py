"""Server-sent events of methods that answer with a stream (GTW-128 to 142).

A frame is named by the field that is set in the message's one-of. What ends a stream: its method, the
client, its credential (within 5 s), the shutdown of the gateway, or a client that stops reading.
Ending it never ends the turn that it shows.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import grpc.aio
import structlog
from google.protobuf.message import Message
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from services.common.errors import LimitReached
from services.gateway.http.body import until_gone
from services.gateway.http.encoding import encode, to_json

_log = structlog.get_logger(__name__)

KEEP_ALIVE_SECONDS = 15.0
# Of silence after which a comment is due; looked at often enough to keep the promise above.
_QUIET_SECONDS = 10.0
_LOOK_SECONDS = 4.0
# A client that takes nothing for so long is cut off.
STUCK_SECONDS = 60.0
ACCEPT_SECONDS = 30.0
# How long a stream that does not say that it accepts may still turn out to refuse.
_REFUSAL_SECONDS = 2.0
MAX_STREAMS = 1_000
# "200" in the initial metadata: accepted, whenever the first event comes. "204": nothing to show.
STATUS_METADATA = "http-status"
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store, no-transform"),
    (b"x-accel-buffering", b"no"),
]

Call = grpc.aio.UnaryStreamCall[Message, Message]


def frame(message: Message) -> bytes | None:
    """One event as it goes over the wire; None for a kind that these contracts do not know.

    The id of a turn's event is ``<run id>:<n>`` (GTW-141); events without a run have none.
    """
    name = message.WhichOneof(str(message.DESCRIPTOR.oneofs[0].name))
    if name is None:
        return None
    data = to_json({"type": name, **encode(getattr(message, name))})
    lines = [b"event: ", name.encode(), b"\n"]
    run_id = getattr(message, "run_id", "")
    if run_id:
        lines += [b"id: ", f"{run_id}:{getattr(message, 'seq', 0)}".encode(), b"\n"]
    return b"".join((*lines, b"data: ", data, b"\n\n"))


class Streams:
    """The open streams of this gateway.

    Args:
        stopping: Set when the gateway shuts down; ends every stream.
    """

    def __init__(self, stopping: asyncio.Event) -> None:
        self._stopping = stopping
        self.open = 0

    async def accept(self, call: Call, until_ended: Callable[[], Awaitable[None]] | None) -> ASGIApp:
        """Wait until the method has accepted the request, and make the answer that shows its stream.

        Args:
            call: Just begun; it is cancelled when it is not shown in the end.
            until_ended: Returns when the caller's credential has ended; None when it cannot.

        Raises:
            AioRpcError: The method refused the request; nothing was sent to the client yet.
            LimitReached: Too many streams are open.
        """
        try:
            if self.open >= MAX_STREAMS:
                raise LimitReached("STREAMS_FULL", "error.streams.full")
            async with asyncio.timeout(ACCEPT_SECONDS):
                metadata = await call.initial_metadata()
            status = dict(metadata).get(STATUS_METADATA)
            if status == "204":
                call.cancel()
                return Response(status_code=204, headers={"Cache-Control": "no-store"})
            read = asyncio.ensure_future(call.read())
            if status is None:
                # A refusal comes without a mark, and its status a moment after the metadata.
                await asyncio.wait({read}, timeout=_REFUSAL_SECONDS)
            if read.done():
                read.result()
            return _Stream(self, call, read, until_ended)
        except TimeoutError:
            call.cancel()
            raise _not_accepted() from None
        except BaseException:
            call.cancel()
            raise

    async def until_stopping(self) -> None:
        """Return when the gateway shuts down."""
        await self._stopping.wait()


def _not_accepted() -> grpc.aio.AioRpcError:
    nothing = grpc.aio.Metadata()
    return grpc.aio.AioRpcError(grpc.StatusCode.DEADLINE_EXCEEDED, nothing, nothing)


class _Stream:
    """One answer in the making."""

    def __init__(
        self,
        streams: Streams,
        call: Call,
        first: asyncio.Future[object],
        until_ended: Callable[[], Awaitable[None]] | None,
    ) -> None:
        self._streams = streams
        self._call = call
        self._first = first
        self._until_ended = until_ended
        self._sent_at = time.monotonic()
        self._sending_since: float | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._streams.open += 1
        tasks: set[asyncio.Task[None]] = set()
        try:
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            pump = asyncio.create_task(self._pump(send))
            watch = [self._keep_alive(send), until_gone(receive), self._streams.until_stopping()]
            if self._until_ended is not None:
                watch.append(_as_coroutine(self._until_ended))
            tasks = {pump, *(asyncio.create_task(one) for one in watch)}
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._call.cancel()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._streams.open -= 1
        if self._sending_since is None:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _pump(self, send: Send) -> None:
        message = await self._read(self._first)
        while isinstance(message, Message):
            if (data := frame(message)) is not None:
                await self._send(send, data)
            message = await self._read(self._call.read())

    async def _read(self, reading: Awaitable[object]) -> object:
        try:
            return await reading
        except grpc.aio.AioRpcError as error:
            # The client sees the end without a closing event and asks again.
            _log.info("a stream broke", code=error.code().name)
            return grpc.aio.EOF

    async def _keep_alive(self, send: Send) -> None:
        """Fill silence; return when the client has stopped reading."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            now = time.monotonic()
            if self._sending_since is not None:
                if now - self._sending_since > STUCK_SECONDS:
                    _log.info("a stream's reader has stopped reading")
                    return
            elif now - self._sent_at >= _QUIET_SECONDS:
                await self._send(send, b": keep-alive\n\n")

    async def _send(self, send: Send, data: bytes) -> None:
        self._sending_since = time.monotonic()
        await send({"type": "http.response.body", "body": data, "more_body": True})
        self._sent_at = time.monotonic()
        self._sending_since = None


async def _as_coroutine(wait: Callable[[], Awaitable[None]]) -> None:
    await wait()
