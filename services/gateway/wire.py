"""HTTP/1.1 on a connection, with limits on what a client may send before a request is one."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from services.gateway.edge import SECURITY_HEADERS
from services.gateway.http.encoding import to_json

# Of request line and headers together.
MAX_HEAD_BYTES = 64 * 1024
HEAD_SECONDS = 20.0
# Of a body that goes on after the request was answered, such as one that was refused for its size.
MAX_UNREAD_BYTES = 32 * 1024 * 1024
UNREAD_SECONDS = 30.0
MAX_CONNECTIONS = 2_000


class GuardedProtocol(HttpToolsProtocol):
    """The server's protocol; a head that is too large or too slow ends the connection."""

    _timer: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _in_head = True
    _unread_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a connection unless there are too many."""
        # uvloop's transports have the methods of asyncio.Transport and are none.
        super().connection_made(cast("asyncio.Transport", transport))
        if len(self.connections) > MAX_CONNECTIONS:
            self.transport.abort()
            return
        self._watch(HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._unwatch()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes, as long as they make a head of bounded size."""
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("The head of the request is too large.")

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._in_head = True
        self._head_bytes = self._unread_bytes = 0
        self._watch(HEAD_SECONDS)

    def on_headers_complete(self) -> None:
        """The head of the request is whole."""
        self._in_head = False
        self._unwatch()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """More of a body; what comes after its answer is passed over within limits."""
        if self.cycle.response_complete:
            self._unread_bytes += len(body)
            if self._unread_bytes > MAX_UNREAD_BYTES:
                self.transport.abort()
            elif self._timer is None:
                self._watch(UNREAD_SECONDS)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is whole."""
        self._unwatch()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request, in the form of every other refusal."""
        body = to_json({"detail": msg})
        headers: dict[str, Any] = {
            **SECURITY_HEADERS,
            "Content-Type": "application/json",
            "Content-Length": len(body),
            "Connection": "close",
        }
        lines = [
            b"HTTP/1.1 400 Bad Request",
            *(f"{name}: {value}".encode() for name, value in headers.items()),
        ]
        self.transport.write(b"\r\n".join((*lines, b"", body)))
        self.transport.close()

    def _watch(self, seconds: float) -> None:
        self._unwatch()
        self._timer = self.loop.call_later(seconds, self.transport.abort)

    def _unwatch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
