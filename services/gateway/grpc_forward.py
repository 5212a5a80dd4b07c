"""The public gRPC port: the API's methods, forwarded byte by byte (GTW-267 to 279).

What a method needs is read from the contracts; what it means is the orchestrator's. Nothing is
decoded on the way, so a newer client's fields reach a newer orchestrator through this gateway.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from services.common.api import ApiMethod, api_methods
from services.common.rpc import locale_from
from services.common.settings import GatewaySettings, is_loopback
from services.common.start import StartError
from services.common.wording import Catalogue, Locale
from services.gateway.login import Login
from services.gateway.upstream import Metadata, about

Context = grpc.aio.ServicerContext[bytes, bytes]


def _same(data: bytes) -> bytes:
    return data


class Forwarder(grpc.GenericRpcHandler):
    """Every method of the API but the internal ones.

    Args:
        channel: To the orchestrator.
        login: Who calls; this port may ask for a credential where HTTP does not.
        language: For callers that name none.
    """

    def __init__(self, channel: grpc.aio.Channel, login: Login, language: Locale) -> None:
        self._login = login
        self._language = language
        self._channel = channel
        self._handlers = {
            method.path: self._handler(method)
            for method in api_methods().values()
            if method.scope != "internal"
        }

    @property
    def services(self) -> tuple[str, ...]:
        """Full names of the services that are forwarded."""
        return tuple(sorted({path.split("/")[1] for path in self._handlers}))

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[bytes, bytes] | None:
        """The handler of a method; None when it is not forwarded."""
        return self._handlers.get(handler_call_details.method)

    def _handler(self, method: ApiMethod) -> grpc.RpcMethodHandler[bytes, bytes]:
        if method.streams:
            stream = self._channel.unary_stream(method.path, _same, _same)
            return grpc.unary_stream_rpc_method_handler(self._streamed(method, stream), _same, _same)
        unary = self._channel.unary_unary(method.path, _same, _same)
        return grpc.unary_unary_rpc_method_handler(self._answered(method, unary), _same, _same)

    def _answered(self, method: ApiMethod, upstream: Callable[..., Any]) -> Callable[..., Any]:
        async def call(request: bytes, context: Context) -> bytes:
            metadata = await self._admitted(method, context)
            left = _time_left(context)
            try:
                answer: bytes = await upstream(
                    request,
                    metadata=metadata,
                    timeout=method.deadline_seconds if left is None else left,
                )
            except grpc.aio.AioRpcError as error:
                await _pass_on(error, context)
                raise
            return answer

        return call

    def _streamed(self, method: ApiMethod, upstream: Callable[..., Any]) -> Callable[..., Any]:
        async def call(request: bytes, context: Context) -> AsyncIterator[bytes]:
            metadata = await self._admitted(method, context)
            answers = upstream(request, metadata=metadata, timeout=_time_left(context))
            try:
                # What the orchestrator says on acceptance reaches the client before the first event.
                await context.send_initial_metadata(_plain(await answers.initial_metadata()))
                async for answer in answers:
                    yield answer
            except grpc.aio.AioRpcError as error:
                await _pass_on(error, context)
            finally:
                answers.cancel()

        return call

    async def _admitted(self, method: ApiMethod, context: Context) -> Metadata:
        shown = dict(context.invocation_metadata() or ())
        authorization = shown.get("authorization")
        credential = self._login.shown(authorization if isinstance(authorization, str) else None)
        address = peer_address(context.peer())
        try:
            principal = await self._login.admit(credential, address, method.scope, method.path)
        except grpc.aio.AioRpcError as error:
            await _pass_on(error, context)
            raise
        return about(principal, address, locale_from(context, self._language))


def credentials_of(settings: GatewaySettings, catalogue: Catalogue) -> grpc.ServerCredentials | None:
    """TLS of the port; None serves in clear, on this machine alone unless the owner accepts it (GTW-269).

    Raises:
        StartError: It would be in clear on an address others reach, or a file of TLS is not there.
    """
    cert, key = settings.grpc_tls_cert, settings.grpc_tls_key
    if cert is not None and key is not None:
        return grpc.ssl_server_credentials([(_file(key, catalogue), _file(cert, catalogue))])
    if cert is not None or key is not None:
        raise StartError("error.start.tls_pair", catalogue=catalogue)
    if not is_loopback(settings.grpc_bind_host) and not settings.grpc_insecure:
        raise StartError("error.start.grpc_in_clear", catalogue=catalogue, host=settings.grpc_bind_host)
    return None


def peer_address(peer: str) -> str:
    """The address in gRPC's name of a peer, ``ipv4:1.2.3.4:5`` or ``ipv6:%5B::1%5D:5``."""
    kind, _, rest = peer.partition(":")
    if kind not in ("ipv4", "ipv6"):
        return ""
    return rest.rpartition(":")[0].replace("%5B", "").replace("%5D", "").strip("[]")


async def _pass_on(error: grpc.aio.AioRpcError, context: Context) -> None:
    """End the call as the orchestrator ended it, its details included."""
    await context.abort(error.code(), error.details() or "", _plain(error.trailing_metadata()))


def _plain(metadata: grpc.aio.Metadata | None) -> Metadata:
    return tuple((key, value) for key, value in metadata or () if not key.startswith(":"))


def _time_left(context: Context) -> float | None:
    left = context.time_remaining()
    return None if left is None else max(left, 0.0)


def _file(path: Path, catalogue: Catalogue) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise StartError(
            "error.start.tls_files", catalogue=catalogue, file=path, problem=error.strerror
        ) from None
