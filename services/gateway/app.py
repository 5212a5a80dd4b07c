"""The gateway, put together: HTTP on one port, gRPC on another, the orchestrator behind both."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

import grpc.aio
import structlog
import uvicorn
from crew.v1 import auth_pb2, auth_pb2_grpc
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from services.common.api import api_methods
from services.common.rpc import RpcServer, connect
from services.common.settings import GatewaySettings, is_loopback
from services.common.start import StartError
from services.common.wording import Catalogue, load
from services.gateway.credentials import Credentials
from services.gateway.edge import Edge
from services.gateway.fence import Fence
from services.gateway.grpc_forward import Forwarder, credentials_of
from services.gateway.http.encoding import to_json
from services.gateway.http.endpoint import Api
from services.gateway.http.openapi import describe
from services.gateway.http.routes import RouteTable
from services.gateway.login import Login
from services.gateway.own_routes import METRICS_PATH, OwnRoutes
from services.gateway.pages import Pages
from services.gateway.sse import Streams
from services.gateway.upstream import Upstream
from services.gateway.wire import GuardedProtocol

_log = structlog.get_logger(__name__)

_STATIC = Path(__file__).parent / "static"
_GZIP_BYTES = 1024
# Nine costs twice the time of six for a hundredth of the size.
_GZIP_LEVEL = 6
_GRACE_SECONDS = 3
_BACKLOG = 512
_CREW = "crew.v1.Crew"
_API_PATHS = frozenset({"/api", METRICS_PATH})


def build(
    settings: GatewaySettings,
    channel: grpc.aio.Channel,
    *,
    stopping: asyncio.Event,
    login: Login | None = None,
    static: Path = _STATIC,
) -> ASGIApp:
    """The HTTP application.

    Args:
        settings: Of the gateway.
        channel: To the orchestrator.
        stopping: Set when the gateway shuts down; ends open streams.
        login: Who calls; by default what the settings say.
        static: Folder of the built web application.
    """
    catalogue = load("common", "gateway")
    language = settings.language
    auth = auth_stub(channel)
    login = login or login_of(channel, required=settings.login_required)
    routes = RouteTable(api_methods().values())
    upstream = Upstream(channel)
    own = OwnRoutes(
        login=login,
        auth=auth,
        upstream=upstream,
        catalogue=catalogue,
        openapi=to_json(describe(routes.bindings, metadata.version("my-agent-crew"))),
    )
    api = Api(
        routes=routes,
        own=own.table(),
        upstream=upstream,
        login=login,
        streams=Streams(stopping),
        catalogue=catalogue,
        language=language,
    )
    pages = Pages(static, catalogue=catalogue, language=language)

    async def choose(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        await (api if path in _API_PATHS or path.startswith("/api/") else pages)(scope, receive, send)

    fence = Fence(
        GZipMiddleware(choose, minimum_size=_GZIP_BYTES, compresslevel=_GZIP_LEVEL),
        allowed_hosts=settings.allowed_hosts,
        trusted_proxies=settings.trusted_proxies,
        catalogue=catalogue,
        language=language,
    )
    return Edge(fence, catalogue=catalogue, language=language)


def auth_stub(channel: grpc.aio.Channel) -> auth_pb2_grpc.AuthAsyncStub:
    """The orchestrator's side of logins."""
    return auth_pb2_grpc.AuthStub(channel)


def login_of(channel: grpc.aio.Channel, *, required: bool) -> Login:
    """Who calls, as the orchestrator behind `channel` knows it."""
    auth = auth_stub(channel)

    async def verify(request: auth_pb2.VerifyRequest) -> auth_pb2.Principal:
        return await auth.Verify(request)

    return Login(required=required, credentials=Credentials(verify), auth=auth)


async def serve(
    settings: GatewaySettings, *, ready: Callable[[], None] | None = None, stop: asyncio.Event
) -> None:
    """Serve until `stop` is set, then end streams, let requests finish for 3 s, and return.

    Args:
        settings: Of the gateway.
        ready: Called once when both ports answer; the orchestrator may still be away.
        stop: Ends the serving.

    Raises:
        StartError: A port is taken, or the settings would expose the crew.
    """
    catalogue = load("common", "gateway")
    credentials = credentials_of(settings, catalogue)
    # Whoever reaches the gRPC port from elsewhere logs in, wherever HTTP is bound (GTW-023, GTW-024).
    grpc_open = is_loopback(settings.grpc_bind_host) or (settings.auth == "none" and settings.auth_insecure)
    channel = connect(
        settings.orchestrator_address,
        caller="gateway",
        called="orchestrator",
        secrets_dir=settings.secrets_dir,
    )
    login = login_of(channel, required=settings.login_required)
    grpc_login = login if grpc_open or login.required else login_of(channel, required=True)
    forwarder = Forwarder(channel, grpc_login, settings.language)
    described = settings.grpc_reflection or is_loopback(settings.grpc_bind_host)
    stopping = asyncio.Event()
    try:
        with contextlib.closing(_bind(settings.host, settings.port)) as listener:
            rpc = RpcServer(
                _authority(settings.grpc_bind_host, settings.grpc_port),
                catalogue=catalogue,
                verifier=None,
                locale=settings.language,
                reflection=forwarder.services if described else (),
                setting="MY_AGENT_GRPC_PORT",
                handlers=(forwarder,),
            )
            await rpc.start(credentials)
            await rpc.report(_CREW, True)
            http = _Http(build(settings, channel, stopping=stopping, login=login))
            serving = asyncio.create_task(http.serve(sockets=[listener]))
            set_up = asyncio.create_task(
                _offer_set_up(settings, channel, catalogue, listener.getsockname()[1])
            )
            try:
                await http.listening(serving)
                _warn(settings, catalogue)
                if ready is not None:
                    ready()
                stopped = asyncio.create_task(stop.wait())
                await asyncio.wait({stopped, serving}, return_when=asyncio.FIRST_COMPLETED)
                stopped.cancel()
            finally:
                set_up.cancel()
                stopping.set()
                http.should_exit = True
                await asyncio.gather(serving, rpc.stop(_GRACE_SECONDS), set_up, return_exceptions=True)
    finally:
        await channel.close()


class _Http(uvicorn.Server):
    """The HTTP server, whose signals are somebody else's business."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=GuardedProtocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                # The fence reads forwarding headers by rules of its own.
                proxy_headers=False,
                timeout_keep_alive=30,
                timeout_graceful_shutdown=_GRACE_SECONDS,
            )
        )
        self._listening = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the process's signal handlers alone."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to take connections."""
        await super().startup(sockets)
        self._listening.set()

    async def listening(self, serving: asyncio.Task[None]) -> None:
        """Wait until connections are taken, or raise what prevents it."""
        waiting = asyncio.create_task(self._listening.wait())
        await asyncio.wait({waiting, serving}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if serving.done():
            serving.result()


def _bind(host: str, port: int) -> socket.socket:
    """A listening socket.

    Raises:
        StartError: The address is taken or is none of this machine.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise StartError(
            "error.start.cannot_listen", address=_authority(host, port), problem=error.strerror
        ) from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise StartError(
                "error.start.port_in_use", port=port, host=host, setting="MY_AGENT_PORT"
            ) from None
        raise StartError(
            "error.start.cannot_listen", address=_authority(host, port), problem=error.strerror
        ) from None
    return listener


def _authority(host: str, port: int) -> str:
    bare = host.strip("[]")
    return f"[{bare}]:{port}" if ":" in bare else f"{bare}:{port}"


def _warn(settings: GatewaySettings, catalogue: Catalogue) -> None:
    if not settings.login_required and not settings.loopback:
        address = _authority(settings.host, settings.port)
        _log.warning(catalogue.text(settings.language, "log.open_to_all", address=address))


async def _offer_set_up(
    settings: GatewaySettings, channel: grpc.aio.Channel, catalogue: Catalogue, port: int
) -> None:
    """While the owner has no credential, print the link that sets one (GTW-025).

    It goes to the terminal past the log's scrubbing: it is the one secret that is made to be read there.
    """
    if not settings.login_required:
        return
    while True:
        try:
            reply = await auth_stub(channel).OpenSetUp(auth_pb2.OpenSetUpRequest(), wait_for_ready=True)
            break
        except grpc.aio.AioRpcError as error:
            _log.warning("cannot ask whether a password is set", code=error.code().name)
            await asyncio.sleep(2)
    if not reply.HasField("setup_token"):
        return
    base = page_address(settings, port)
    # Behind the sign, a browser keeps it to itself.
    link = f"{base}/#/setup/{reply.setup_token}"
    sys.stderr.write(catalogue.text(settings.language, "log.set_up", link=link) + "\n")
    sys.stderr.flush()


def page_address(settings: GatewaySettings, port: int) -> str:
    """Where the owner opens the page, without a final slash.

    What the owner set wins (`web_url`), then where a container's port is published, since the port
    bound inside of it is nobody's outside, then what is bound.
    """
    if settings.web_url:
        return settings.web_url
    host, colon, published = settings.published_address.rpartition(":")
    if not colon:
        host, published = settings.host, str(port)
    host = host.strip("[]")
    if host in ("0.0.0.0", "::", ""):  # noqa: S104 - compared, not bound
        host = "localhost"
    return f"http://{f'[{host}]' if ':' in host else host}:{published}"
