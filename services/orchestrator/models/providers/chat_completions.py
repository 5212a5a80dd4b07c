"""Asking an OpenAI-compatible server and reading its stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx
import orjson
from httpx_sse import EventSource

from services.orchestrator.models import faults
from services.orchestrator.models.assembly import Chunk
from services.orchestrator.models.config import Limits
from services.orchestrator.models.contract import ModelRequest
from services.orchestrator.models.opaque import origin_of
from services.orchestrator.models.providers.body import request_body
from services.orchestrator.models.providers.chunk import NotAChunk, has_finished, read_chunk
from services.orchestrator.models.providers.dialect import Dialect
from services.orchestrator.models.transport import ReplyTooLong

_ERROR_BODY_BYTES = 64 * 1024
_ERROR_BODY_SECONDS = 10
_LIST_SECONDS = 10
_WINDOW_FIELDS = ("context_length", "context_window", "max_model_len", "max_context_length")


class ChatCompletions:
    """A provider that speaks chat completions.

    Args:
        client: Shared by all providers.
        dialect: Which server it is.
        limits: Times and sizes.
        secrets: Values never to appear in an error.
        without_usage: Addresses that refused to be asked for usage; added to (FLD-011).
    """

    def __init__(
        self,
        client: httpx.AsyncClient,
        dialect: Dialect,
        limits: Limits,
        secrets: tuple[str, ...],
        without_usage: set[str],
    ) -> None:
        self._client = client
        self._dialect = dialect
        self._limits = limits
        self._secrets = secrets
        self._without_usage = without_usage
        self._base_url = dialect.base_url.rstrip("/")
        self._place = _place(self._base_url)

    @property
    def name(self) -> str:
        """The first part of its routes."""
        return self._dialect.name

    @property
    def missing_key(self) -> str:
        """The environment variable it lacks; "" when it can be asked."""
        return self._dialect.missing_key

    def origin(self, model: str) -> str:
        """Who may have the opaque fields of this model's replies back."""
        return origin_of(self.name, self._base_url, model)

    async def chunks(self, request: ModelRequest, model: str) -> AsyncGenerator[Chunk, None]:
        """See `Provider.chunks`."""
        try:
            async with aclosing(self._ask(request, model)) as chunks:
                async for chunk in chunks:
                    yield chunk
                return
        except faults.AttemptFailed as failed:
            if not failed.usage_option or self._base_url in self._without_usage:
                raise
            self._without_usage.add(self._base_url)
        async with aclosing(self._ask(request, model)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def context_windows(self) -> dict[str, int]:
        """Read the provider's model list; empty when it has none."""
        try:
            async with asyncio.timeout(_LIST_SECONDS):
                response = await self._client.get(f"{self._base_url}/models", headers=self._headers())
            listed = orjson.loads(response.content) if response.status_code == 200 else {}
        except (
            TimeoutError,
            httpx.HTTPError,
            httpx.InvalidURL,
            orjson.JSONDecodeError,
            faults.AttemptFailed,
        ):
            return {}
        models = listed.get("data") if isinstance(listed, dict) else None
        windows: dict[str, int] = {}
        for model in models if isinstance(models, list) else ():
            if isinstance(model, dict) and isinstance(model.get("id"), str) and (window := _window(model)):
                windows[model["id"]] = window
        return windows

    async def _ask(self, request: ModelRequest, model: str) -> AsyncGenerator[Chunk, None]:
        body = request_body(
            request,
            model,
            self._dialect,
            origin=self.origin(model),
            ask_usage=self._base_url not in self._without_usage,
            limit=self._limits.request_bytes,
        )
        deadline = asyncio.get_running_loop().time() + self._limits.first_data_seconds
        async with self._answer(body, deadline) as response:
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind == "application/json":
                # Asked to stream, it answers whole.
                body = await self._whole_body(response, deadline)
                try:
                    yield self._checked(body)
                except NotAChunk:
                    raise faults.malformed(self._place) from None
                return
            if kind == "text/html":
                raise faults.malformed(self._place)
            async with aclosing(self._events(response, deadline)) as events:
                async for chunk in events:
                    yield chunk

    @asynccontextmanager
    async def _answer(self, body: bytes, deadline: float) -> AsyncIterator[httpx.Response]:
        """Send the request; the response is open, and its status is 200."""
        try:
            sent = self._client.build_request(
                "POST", f"{self._base_url}/chat/completions", content=body, headers=self._headers()
            )
            async with asyncio.timeout_at(deadline):
                response = await self._client.send(sent, stream=True)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol, httpx.InvalidURL):
            raise faults.no_connection(self._place) from None
        except TimeoutError:
            raise faults.silent(self._place, self._limits.first_data_seconds) from None
        except httpx.HTTPError:
            raise faults.broken_connection(self._place) from None
        try:
            if response.status_code != 200:
                said = await self._error_body(response)
                raise faults.refused(response.status_code, response.headers, said, self._secrets)
            yield response
        finally:
            await response.aclose()

    async def _events(self, response: httpx.Response, deadline: float) -> AsyncGenerator[Chunk, None]:
        """Read the stream to its end; `deadline` is for its first data."""
        loop = asyncio.get_running_loop()
        allowed = self._limits.first_data_seconds
        # Whatever a server calls its stream, it is UTF-8 text of events.
        response.headers["content-type"] = "text/event-stream; charset=utf-8"
        finished = broken = False
        async with aclosing(EventSource(response).aiter_sse()) as events:
            while True:
                try:
                    async with asyncio.timeout_at(deadline):
                        event = await anext(events, None)
                except (TimeoutError, httpx.HTTPError) as error:
                    if finished:
                        return
                    raise self._stream_fault(error, allowed) from None
                data = event.data.strip() if event else ""
                if event is None or data == "[DONE]":
                    break
                if broken:
                    raise faults.malformed(self._place)
                if not data:
                    continue
                try:
                    chunk = self._checked(data)
                except NotAChunk:
                    # Either garbage, or the last words of a connection that broke in the middle.
                    broken = True
                    continue
                finished = finished or has_finished(chunk)
                yield chunk
                allowed = self._limits.trailer_seconds if finished else self._limits.between_data_seconds
                deadline = loop.time() + allowed
        if not finished and (broken or event is None):
            raise faults.broken_connection(self._place)

    def _checked(self, data: str | bytes) -> Chunk:
        chunk = read_chunk(data)
        if chunk.get("error"):
            raise faults.inside_stream(chunk["error"], self._secrets)
        return chunk

    def _stream_fault(self, error: Exception, allowed: float) -> faults.AttemptFailed:
        if isinstance(error, TimeoutError):
            return faults.silent(self._place, allowed)
        if isinstance(error, ReplyTooLong):
            return faults.oversized(self._place, self._limits.reply_bytes)
        return faults.broken_connection(self._place)

    async def _whole_body(self, response: httpx.Response, deadline: float) -> bytes:
        try:
            async with asyncio.timeout_at(deadline):
                return await response.aread()
        except (TimeoutError, httpx.HTTPError) as error:
            raise self._stream_fault(error, self._limits.first_data_seconds) from None

    async def _error_body(self, response: httpx.Response) -> bytes:
        """The beginning of an error's body; what cannot be read in time is left out."""
        body = bytearray()
        try:
            async with asyncio.timeout(_ERROR_BODY_SECONDS):
                async for data in response.aiter_bytes():
                    body += data
                    if len(body) >= _ERROR_BODY_BYTES:
                        break
        except (TimeoutError, httpx.HTTPError):
            pass
        return bytes(body[:_ERROR_BODY_BYTES])

    def _headers(self) -> Mapping[str, str]:
        headers = {"content-type": "application/json", "accept": "text/event-stream"}
        if key := self._dialect.key:
            if not (key.isascii() and key.isprintable()):
                raise faults.unusable_key(self.name)
            headers["authorization"] = f"Bearer {key}"
        return headers


def _window(model: Mapping[str, Any]) -> int | None:
    top = model.get("top_provider")
    for section in (model, top if isinstance(top, dict) else {}):
        for name in _WINDOW_FIELDS:
            value = section.get(name)
            if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1_000_000_000:
                return value
    return None


def _place(base_url: str) -> str:
    """Host and port of an address, for people; no name or password of it."""
    try:
        parts = urlsplit(base_url)
        host, port = parts.hostname or base_url, parts.port
    except ValueError:
        return "?"
    return f"{host}:{port}" if port else host
