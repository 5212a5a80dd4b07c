"""The gRPC server of a service."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Iterable

import grpc
import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from services.common.rpc.handling import Around
from services.common.rpc.options import SERVER_OPTIONS
from services.common.rpc.tokens import Verifier
from services.common.start import StartError
from services.common.wording import Catalogue, Locale

_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


class RpcServer:
    """A grpc.aio server with what every service needs: tokens, errors, health, graceful stop.

    Servicers are added to `grpc` before `start`. Health (``grpc.health.v1``) is for everybody, all
    else for callers that `verifier` knows.

    Args:
        listen: ``host:port`` (port 0 takes a free one) or ``unix:/path``.
        catalogue: Holds the sentences of every error the servicers raise, and the common ones.
        verifier: The callers let in; None for a port that checks credentials by itself.
        locale: Of error sentences for callers that name no language.
        reflection: Full names of the services to describe to programs; empty switches it off.
        setting: What to change when the address is taken, named in the refusal.
        handlers: Of methods that are not those of a servicer.
        interceptors: Called with the token checked and the trace entered; what they raise becomes a status.
    """

    def __init__(
        self,
        listen: str,
        *,
        catalogue: Catalogue,
        verifier: Verifier | None,
        locale: Locale = "en",
        reflection: Iterable[str] = (),
        setting: str = "",
        handlers: Iterable[grpc.GenericRpcHandler] = (),
        interceptors: Iterable[grpc.aio.ServerInterceptor] = (),
    ) -> None:
        self._listen = listen
        self._setting = setting
        self.grpc = grpc.aio.server(
            handlers=tuple(handlers),
            interceptors=[Around(verifier, catalogue, locale), *interceptors],
            options=SERVER_OPTIONS,
        )
        self._health = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self.grpc)
        described = tuple(reflection)
        if described:
            from grpc_reflection.v1alpha import reflection as reflecting

            reflecting.enable_server_reflection(
                (*described, health.SERVICE_NAME, reflecting.SERVICE_NAME), self.grpc
            )
        self.port = 0

    async def start(self, credentials: grpc.ServerCredentials | None = None) -> None:
        """Bind and serve; health answers SERVING from here on.

        Args:
            credentials: Of TLS; None serves in clear, for sockets and internal networks.

        Raises:
            StartError: The address is taken or cannot be bound.
        """
        await asyncio.to_thread(_try_bind, self._listen, self._setting)
        try:
            if credentials is None:
                self.port = self.grpc.add_insecure_port(self._listen)
            else:
                self.port = self.grpc.add_secure_port(self._listen, credentials)
        except RuntimeError:
            raise StartError(
                "error.start.cannot_listen", address=self._listen, problem=os.strerror(errno.EADDRNOTAVAIL)
            ) from None
        await self.grpc.start()
        if self._listen.startswith("unix:"):
            os.chmod(self._listen.removeprefix("unix:"), 0o600)
        await self.report("", True)

    async def report(self, service: str, serving: bool) -> None:
        """Say by ``grpc.health.v1`` whether `service` (a full name; "" the whole server) serves."""
        await self._health.set(service, _SERVING if serving else _NOT_SERVING)

    async def stop(self, grace_seconds: float = 3.0) -> None:
        """Say NOT_SERVING, take no more calls, and let running ones end within the grace."""
        await self._health.enter_graceful_shutdown()
        await self.grpc.stop(grace_seconds)


def _try_bind(listen: str, setting: str) -> None:
    """Refuse with the system's own reason, which gRPC writes to its log and does not tell."""
    if listen.startswith("unix:"):
        path = listen.removeprefix("unix:")
        parent = os.path.dirname(path)
        if not os.access(parent, os.W_OK):
            raise StartError("error.start.cannot_listen", address=listen, problem=os.strerror(errno.EACCES))
        if len(os.fsencode(path)) > 107:
            raise StartError(
                "error.start.cannot_listen", address=listen, problem=os.strerror(errno.ENAMETOOLONG)
            )
        return
    host, _, port = listen.rpartition(":")
    try:
        found = socket.getaddrinfo(
            host.strip("[]"), int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, address = found[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            raise StartError("error.start.port_in_use", port=port, host=host, setting=setting) from None
        problem = error.strerror if isinstance(error, OSError) else str(error)
        raise StartError("error.start.cannot_listen", address=listen, problem=problem) from None
