"""Reading a request's body within limits of size and time."""

from __future__ import annotations

import asyncio

from starlette.types import Receive, Scope

from services.common.errors import NotApplicable, TooLarge
from services.gateway.http.problems import TooSlow
from services.gateway.peer import header

# A message of 200,000 characters is 2.4 MB when every one of them is written as an escaped pair.
MAX_BODY_BYTES = 4 * 1024 * 1024
READ_SECONDS = 30


class ClientGone(Exception):
    """The client has left; there is nobody to answer."""


async def read_body(scope: Scope, receive: Receive, limit: int = MAX_BODY_BYTES) -> bytes:
    """The whole body.

    Args:
        scope: Of the request.
        receive: Of the request.
        limit: Most bytes taken; what says that it is larger is not read at all.

    Raises:
        TooLarge: Over the limit (413).
        TooSlow: It did not arrive within `READ_SECONDS` (408).
        NotApplicable: The length that the request gives is no number (400).
        ClientGone: The connection ended.
    """
    length = header(scope, b"content-length")
    if length is not None and not (length.isascii() and length.isdecimal()):
        raise NotApplicable("BAD_LENGTH", "error.body.cut_off")
    if length is not None and (len(length) > 12 or int(length) > limit):
        raise TooLarge("BODY_TOO_LARGE", "error.body.too_large", limit=limit)
    chunks = bytearray()
    try:
        async with asyncio.timeout(READ_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientGone
                chunks += message.get("body", b"")
                if len(chunks) > limit:
                    raise TooLarge("BODY_TOO_LARGE", "error.body.too_large", limit=limit)
                if not message.get("more_body", False):
                    return bytes(chunks)
    except TimeoutError:
        raise TooSlow("BODY_TOO_SLOW", "error.body.too_slow", seconds=READ_SECONDS) from None


async def until_gone(receive: Receive) -> None:
    """Return when the client has left. Only after the whole body was read."""
    while (await receive())["type"] != "http.disconnect":
        pass
