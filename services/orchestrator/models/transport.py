"""The one HTTP client of all providers."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import AsyncIterator

import httpx


class ReplyTooLong(httpx.TransportError):
    """A response body over the limit."""


class BoundedTransport(httpx.AsyncBaseTransport):
    """Ends every response body at a limit, so that no server can fill the memory.

    Args:
        inner: Does the work.
        limit: Most bytes of one body.
    """

    def __init__(self, inner: httpx.AsyncBaseTransport, limit: int) -> None:
        self._inner = inner
        self._limit = limit

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Pass the request on and bound what comes back."""
        response = await self._inner.handle_async_request(request)
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = _Bounded(response.stream, self._limit)
        return response

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


class _Bounded(httpx.AsyncByteStream):
    def __init__(self, inner: httpx.AsyncByteStream, limit: int) -> None:
        self._inner = inner
        self._left = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        beginning: bytes | None = b""
        async for data in self._inner:
            self._left -= len(data)
            if self._left < 0:
                raise ReplyTooLong("response body over the limit")
            if beginning is not None:
                beginning += data
                if len(beginning) < len(BOM_UTF8) and BOM_UTF8.startswith(beginning):
                    continue
                # A stream of events may begin with a byte order mark, which belongs to no line of it.
                data, beginning = beginning.removeprefix(BOM_UTF8), None
            yield data
        if beginning:
            yield beginning
        # Some servers leave out the blank line that ends the last event of a stream.
        yield b"\n\n"

    async def aclose(self) -> None:
        await self._inner.aclose()


def make_client(*, connect_seconds: float, reply_bytes: int) -> httpx.AsyncClient:
    """Make the client: no redirects, no compression, no limit on parallel streams.

    Silence is timed by the caller, who knows which bytes count (FLD-009).
    """
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=30)
    return httpx.AsyncClient(
        transport=BoundedTransport(httpx.AsyncHTTPTransport(limits=limits), reply_bytes),
        timeout=httpx.Timeout(None, connect=connect_seconds),
        headers={"accept-encoding": "identity", "user-agent": "my-agent-crew"},
        follow_redirects=False,
    )
