"""What happens around every method of a server: who calls, in which trace, and how it fails."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from contextvars import ContextVar
from typing import Any

import grpc
import grpc.aio
import structlog
from google.rpc.status_pb2 import Status

from services.common.errors import CrewError, Unauthenticated
from services.common.rpc import trace
from services.common.rpc.faults import STATUS_KEY, internal, status_of
from services.common.rpc.tokens import Verifier
from services.common.wording import Catalogue, Locale, locale_of

_log = structlog.get_logger(__name__)
_caller: ContextVar[str] = ContextVar("caller", default="")
# Asked by whoever watches the process, who holds no token.
_OPEN = "/grpc.health.v1.Health/"


def caller_of() -> str:
    """The service whose token came with the call at hand; empty when the server asks for none."""
    return _caller.get()


def locale_from(context: grpc.aio.ServicerContext[Any, Any], default: Locale = "en") -> Locale:
    """The language the caller asks for in ``accept-language``; else `default`."""
    for key, value in context.invocation_metadata() or ():
        if key == "accept-language":
            return locale_of(_text(value), default)
    return default


class Around(grpc.aio.ServerInterceptor):
    """Checks the token of the direction, enters the caller's trace and turns errors into statuses.

    Args:
        verifier: Knows the callers; None lets everybody in, for a port that checks otherwise.
        catalogue: Holds the sentences of every error this server raises.
        locale: Of sentences for callers that name no language.
    """

    def __init__(self, verifier: Verifier | None, catalogue: Catalogue, locale: Locale) -> None:
        self._verifier = verifier
        self._catalogue = catalogue
        self._locale = locale

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """Wrap the method that was found, whatever its kind."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        method = handler_call_details.method
        metadata = dict(handler_call_details.invocation_metadata or ())
        return around_method(handler, lambda context: self._call(method, metadata, context))

    @asynccontextmanager
    async def _call(
        self, method: str, metadata: dict[str, str | bytes], context: grpc.aio.ServicerContext[Any, Any]
    ) -> AsyncIterator[None]:
        here = trace.Trace.from_header(_text(metadata.get("traceparent")))
        # Every call has a task, and so a context, of its own: nothing has to be put back.
        trace.enter(here)
        locale = locale_of(_text(metadata.get("accept-language")), self._locale)
        try:
            _caller.set(self._verified(method, metadata))
            yield
        except (grpc.aio.AbortError, GeneratorExit):
            raise
        except CrewError as error:
            await _abort(context, status_of(error, self._catalogue, locale))
        except Exception:
            _log.exception("a method failed", method=method, trace_id=here.trace_id)
            await _abort(context, internal(self._catalogue, locale, here.trace_id))

    def _verified(self, method: str, metadata: dict[str, str | bytes]) -> str:
        if self._verifier is None or method.startswith(_OPEN):
            return ""
        scheme, _, token = (_text(metadata.get("authorization")) or "").partition(" ")
        caller = self._verifier.caller(token) if scheme.lower() == "bearer" else None
        if caller is None:
            raise Unauthenticated("DIRECTION_TOKEN", "error.direction_token")
        return caller


Enter = Callable[[grpc.aio.ServicerContext[Any, Any]], AbstractAsyncContextManager[None]]


def around_method(handler: Any, enter: Enter) -> Any:
    """A handler of the same kind whose method runs inside ``enter(context)``."""
    codec = {
        "request_deserializer": handler.request_deserializer,
        "response_serializer": handler.response_serializer,
    }
    match handler.request_streaming, handler.response_streaming:
        case False, False:
            return grpc.unary_unary_rpc_method_handler(_awaited(handler.unary_unary, enter), **codec)
        case True, False:
            return grpc.stream_unary_rpc_method_handler(_awaited(handler.stream_unary, enter), **codec)
        case False, True:
            return grpc.unary_stream_rpc_method_handler(_streamed(handler.unary_stream, enter), **codec)
        case _:
            return grpc.stream_stream_rpc_method_handler(_streamed(handler.stream_stream, enter), **codec)


def _awaited(method: Callable[..., Any], enter: Enter) -> Callable[..., Any]:
    async def call(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
        async with enter(context):
            return await method(request, context)

    return call


def _streamed(method: Callable[..., Any], enter: Enter) -> Callable[..., Any]:
    """Keep the two ways to answer with a stream apart: yielding, and writing to the context."""
    if not inspect.isasyncgenfunction(method):
        return _awaited(method, enter)

    async def call(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> AsyncIterator[Any]:
        async with enter(context), aclosing(method(request, context)) as answers:
            async for answer in answers:
                yield answer

    return call


async def _abort(context: grpc.aio.ServicerContext[Any, Any], status: Status) -> None:
    code = next(code for code in grpc.StatusCode if code.value[0] == status.code)
    await context.abort(code, status.message, trailing_metadata=((STATUS_KEY, status.SerializeToString()),))


def _text(value: str | bytes | None) -> str | None:
    return value if isinstance(value, str) else None
