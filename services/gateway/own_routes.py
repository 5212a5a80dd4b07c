"""The addresses written by hand: they set cookies, answer without the orchestrator, or show less to some."""

from __future__ import annotations

from collections.abc import Mapping

import grpc
import grpc.aio
from crew.v1 import auth_pb2, auth_pb2_grpc, stats_pb2, system_pb2
from starlette.responses import Response

from services.common.api import api_methods
from services.common.errors import Conflict
from services.common.wording import Catalogue
from services.gateway.http.body import read_body
from services.gateway.http.decoding import fill, parse_object
from services.gateway.http.encoding import encode, to_json
from services.gateway.http.endpoint import Handler, Request
from services.gateway.http.problems import upstream_problem
from services.gateway.login import Login, ended_cookie, session_cookie, session_of
from services.gateway.peer import peer_of
from services.gateway.upstream import Upstream, about

HEALTH = "/crew.v1.System/Health"
# Where Prometheus looks unless it is told otherwise.
METRICS_PATH = "/metrics"
_METRICS = "/crew.v1.Stats/Metrics"
# Passwords are short; a larger body is no login.
_MAX_LOGIN_BYTES = 16 * 1024
_NO_STORE = {"Cache-Control": "no-store"}


class OwnRoutes:
    """Login, session, health, figures and the description of the API.

    Args:
        login: Who calls.
        auth: The orchestrator's side of logins.
        upstream: The orchestrator.
        catalogue: Of the gateway.
        openapi: The description, as JSON.
    """

    def __init__(
        self,
        *,
        login: Login,
        auth: auth_pb2_grpc.AuthAsyncStub,
        upstream: Upstream,
        catalogue: Catalogue,
        openapi: bytes,
    ) -> None:
        self._login = login
        self._auth = auth
        self._upstream = upstream
        self._catalogue = catalogue
        self._openapi = openapi

    def table(self) -> Mapping[str, Mapping[str, Handler]]:
        """Every address with its methods."""
        return {
            "/api/auth/login": {"POST": self.log_in},
            "/api/auth/setup": {"POST": self.set_up},
            "/api/auth/logout": {"POST": self.log_out},
            "/api/auth/session": {"GET": self.session},
            "/api/health": {"GET": self.health},
            "/api/openapi.json": {"GET": self.describe},
            METRICS_PATH: {"GET": self.metrics},
        }

    async def log_in(self, request: Request) -> Response:
        """A password against a session's cookie."""
        message = auth_pb2.LoginRequest()
        fill(message, await self._login_body(request))
        message.address = peer_of(request.scope).address
        reply = await self._auth.Login(message, metadata=_language(request))
        return _with_cookie(session_cookie(request.scope, reply.session))

    async def set_up(self, request: Request) -> Response:
        """The owner's first password, with the one-time token of the log (GTW-025)."""
        message = auth_pb2.SetUpRequest()
        fill(message, await self._login_body(request))
        message.address = peer_of(request.scope).address
        reply = await self._auth.SetUp(message, metadata=_language(request))
        return _with_cookie(session_cookie(request.scope, reply.session))

    async def log_out(self, request: Request) -> Response:
        """End the session of the cookie; without one nothing is to be done."""
        secret = session_of(request.scope)
        if secret:
            address = peer_of(request.scope).address
            await self._auth.Logout(
                auth_pb2.LogoutRequest(session=secret, address=address), metadata=_language(request)
            )
            self._login.credentials.forget()
        return _with_cookie(ended_cookie(request.scope))

    async def session(self, request: Request) -> Response:
        """Who calls; asking prolongs the cookie as the orchestrator prolongs the session."""
        credential = self._login.credential(request.scope)
        principal = await self._login.principal(credential, peer_of(request.scope).address)
        answer = Response(
            to_json(
                {
                    "mode": "owner" if self._login.required else "none",
                    "authenticated": principal is not None,
                    "kind": principal.kind if principal is not None else None,
                    "scopes": list(principal.scopes) if principal is not None else [],
                    "expires_at": principal.expires_at or None if principal is not None else None,
                }
            ),
            media_type="application/json",
            headers=_NO_STORE,
        )
        if principal is not None and credential is not None and credential.kind == "session":
            answer.headers["Set-Cookie"] = session_cookie(request.scope, credential.secret)
        return answer

    async def health(self, request: Request) -> Response:
        """Whether the crew works; to callers without a credential its status alone (GTW-005, GTW-026)."""
        address = peer_of(request.scope).address
        try:
            principal = await self._login.principal(self._login.credential(request.scope), address)
            reply = await self._upstream.call(
                api_methods()[HEALTH], system_pb2.HealthRequest(), about(principal, address, request.locale)
            )
        except grpc.aio.AioRpcError as error:
            problem = upstream_problem(error, self._catalogue, request.locale)
            if problem.status != 503:
                raise
            tree = {"status": "unavailable", "service": "orchestrator", "detail": problem.detail}
            return Response(to_json(tree), status_code=503, media_type="application/json", headers=_NO_STORE)
        tree = encode(reply)
        if principal is None:
            tree = {"status": tree["status"]}
        return Response(to_json(tree), media_type="application/json", headers=_NO_STORE)

    async def metrics(self, request: Request) -> Response:
        """The figures of the orchestrator for Prometheus (PIP-111)."""
        address = peer_of(request.scope).address
        method = api_methods()[_METRICS]
        credential = self._login.credential(request.scope)
        principal = await self._login.admit(credential, address, method.scope, method.path)
        reply = await self._upstream.call(
            method, stats_pb2.MetricsRequest(), about(principal, address, request.locale)
        )
        assert isinstance(reply, stats_pb2.MetricsReply)
        return Response(reply.text, headers={**_NO_STORE, "Content-Type": reply.content_type})

    async def describe(self, request: Request) -> Response:
        """OpenAPI of every address."""
        return Response(self._openapi, media_type="application/json", headers={"Cache-Control": "no-cache"})

    async def _login_body(self, request: Request) -> Mapping[str, object]:
        if not self._login.required:
            raise Conflict("LOGIN_OFF", "error.login.off")
        tree = parse_object(await read_body(request.scope, request.receive, _MAX_LOGIN_BYTES))
        # Where the caller is, the gateway says: overwritten after this, whatever the body claims.
        tree.pop("address", None)
        return tree


def _language(request: Request) -> tuple[tuple[str, str], ...]:
    return (("accept-language", request.locale),)


def _with_cookie(cookie: str) -> Response:
    return Response(status_code=204, headers={**_NO_STORE, "Set-Cookie": cookie})
