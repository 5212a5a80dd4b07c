"""The API over HTTP: from a request to a method of the orchestrator and back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

import grpc.aio
from crew.v1 import attachment_pb2
from google.protobuf import field_mask_pb2
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from services.common.api import ApiMethod
from services.common.errors import CrewError, Invalid, NotFound
from services.common.rpc import trace
from services.common.wording import Catalogue, Locale, locale_of
from services.gateway.http.body import ClientGone, read_body, until_gone
from services.gateway.http.decoding import UPDATE_MASK, fill, fill_query, parse_object
from services.gateway.http.encoding import encode, encode_field, to_json
from services.gateway.http.problems import WrongMethod, problem_of, upstream_problem
from services.gateway.http.routes import Binding, Match, RouteTable, WrongVerb
from services.gateway.login import Login
from services.gateway.peer import header, peer_of
from services.gateway.sse import Streams
from services.gateway.upstream import Metadata, Upstream, about

# Larger bodies are parsed in a thread, so that other requests go on meanwhile.
_PARSE_INLINE_BYTES = 64 * 1024
_MAX_QUERY_FIELDS = 100
# Past this, the wait for an answer is worth ending when the client leaves.
_LONG_SECONDS = 60
# Methods after which kept answers about credentials are wrong.
_ENDING = frozenset({"/crew.v1.Auth/DeleteToken", "/crew.v1.Auth/EndSessions"})


@dataclass(frozen=True, slots=True)
class Request:
    """What a hand-written address gets."""

    scope: Scope
    receive: Receive
    locale: Locale


Handler = Callable[[Request], Awaitable[Response]]


class Api:
    """Everything under ``/api/``.

    Args:
        routes: The addresses of the contracts.
        own: Hand-written addresses, which win: by path, then by HTTP method.
        upstream: The orchestrator.
        login: Who calls.
        streams: The open streams.
        catalogue: Of the gateway.
        language: For callers that name none.
    """

    def __init__(
        self,
        *,
        routes: RouteTable,
        own: Mapping[str, Mapping[str, Handler]],
        upstream: Upstream,
        login: Login,
        streams: Streams,
        catalogue: Catalogue,
        language: Locale,
    ) -> None:
        self._routes = routes
        self._own = own
        self._upstream = upstream
        self._login = login
        self._streams = streams
        self._catalogue = catalogue
        self._language = language

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        locale = locale_of(header(scope, b"accept-language"), self._language)
        trace.enter(trace.Trace.from_header(header(scope, b"traceparent")))
        try:
            answer = await self._answer(Request(scope, receive, locale))
        except ClientGone:
            return
        except CrewError as error:
            answer = problem_of(error, self._catalogue, locale).response()
        except grpc.aio.AioRpcError as error:
            answer = upstream_problem(error, self._catalogue, locale).response()
        await answer(scope, receive, send)

    async def _answer(self, request: Request) -> ASGIApp:
        scope = request.scope
        # A HEAD is answered like a GET; the server keeps the body back.
        verb = "GET" if scope["method"] == "HEAD" else str(scope["method"])
        handlers = self._own.get(scope["path"])
        if handlers is not None:
            if verb not in handlers:
                raise _wrong_method(tuple(handlers))
            return await handlers[verb](request)
        found = self._routes.find(verb, scope["raw_path"])
        if found is None:
            raise NotFound("NO_ROUTE", "error.no_route")
        if isinstance(found, WrongVerb):
            raise _wrong_method(found.allowed)
        if found.binding.method.streams and scope["method"] == "HEAD":
            raise _wrong_method((found.binding.verb,))
        return await self._call(found, request)

    async def _call(self, match: Match, request: Request) -> ASGIApp:
        method = match.binding.method
        address = peer_of(request.scope).address
        credential = self._login.credential(request.scope)
        principal = await self._login.admit(credential, address, method.scope, method.path)
        message = await self._message(match, request)
        metadata = about(principal, address, request.locale)
        if method.streams:
            call = self._upstream.stream(method, message, metadata)
            if credential is None:
                return await self._streams.accept(call, None)
            credentials = self._login.credentials
            return await self._streams.accept(call, lambda: credentials.until_ended(credential, address))
        answer = await self._unary(method, message, metadata, request.receive)
        if method.path in _ENDING:
            self._login.credentials.forget()
        return _response(match.binding, answer)

    async def _unary(
        self, method: ApiMethod, message: Message, metadata: Metadata, receive: Receive
    ) -> Message:
        if method.deadline_seconds < _LONG_SECONDS:
            return await self._upstream.call(method, message, metadata)
        call = asyncio.ensure_future(self._upstream.call(method, message, metadata))
        gone = asyncio.ensure_future(until_gone(receive))
        try:
            await asyncio.wait({call, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not call.done():
                raise ClientGone
            return call.result()
        finally:
            for task in (call, gone):
                task.cancel()
            await asyncio.gather(call, gone, return_exceptions=True)

    async def _message(self, match: Match, request: Request) -> Message:
        body = await read_body(request.scope, request.receive)
        if len(body) > _PARSE_INLINE_BYTES:
            return await asyncio.to_thread(build, match, body, request.scope)
        return build(match, body, request.scope)


def build(match: Match, body: bytes, scope: Scope) -> Message:
    """The request message of a match. The path wins over body and query.

    Raises:
        NotApplicable: The body is no JSON (400).
        Invalid: A name or a value is not allowed (422).
    """
    binding = match.binding
    message: Message = GetMessageClass(binding.method.request)()
    fields = binding.method.request.fields_by_name
    if binding.takes_body:
        tree = parse_object(body)
        fill(message, tree)
        if UPDATE_MASK in fields:
            paths = [name for name in tree if name not in binding.path_fields]
            getattr(message, UPDATE_MASK).CopyFrom(field_mask_pb2.FieldMask(paths=paths))
    elif scope["query_string"]:
        try:
            pairs = parse_qsl(
                scope["query_string"].decode("ascii"),
                keep_blank_values=True,
                errors="strict",
                max_num_fields=_MAX_QUERY_FIELDS,
            )
        except ValueError:
            raise Invalid("BAD_QUERY", "error.query") from None
        fill_query(message, pairs, binding.path_fields)
    for name, value in match.values.items():
        setattr(message, name, value)
    if binding.method.streams and "last_event_id" in fields:
        last = header(scope, b"last-event-id")
        if last is not None and last.isascii():
            fill_query(message, [("last_event_id", last[:200])], ())
    return message


def _response(binding: Binding, answer: Message) -> Response:
    status = binding.method.status
    if status == 204:
        return Response(status_code=204, headers={"Cache-Control": "no-store"})
    if isinstance(answer, attachment_pb2.Attachment):
        return _attachment(answer)
    shown = binding.shown
    tree = encode(answer) if shown is None else encode_field(answer, shown)
    return Response(
        to_json(tree),
        status_code=status,
        media_type="application/json",
        headers={"Cache-Control": "no-store"},
    )


def _attachment(file: attachment_pb2.Attachment) -> Response:
    """A file to be saved: whatever it holds, no browser shows it as a page of this origin."""
    return Response(
        file.content,
        media_type=file.content_type,
        headers={
            "Content-Disposition": f'attachment; filename="{file.file_name}"',
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
        },
    )


def _wrong_method(allowed: tuple[str, ...]) -> WrongMethod:
    return WrongMethod("WRONG_METHOD", "error.wrong_method", allowed=", ".join(sorted(allowed)))
