"""Who calls: a session's cookie, an API token, or the owner at the machine itself (GTW-023 to 033)."""

from __future__ import annotations

import asyncio

import grpc.aio
import structlog
from crew.v1 import auth_pb2, auth_pb2_grpc
from starlette.types import Scope as AsgiScope

from services.common.api import OWNER_SCOPES, Scope
from services.common.errors import Forbidden, Unauthenticated
from services.gateway.credentials import Credential, Credentials
from services.gateway.peer import header, headers, peer_of

_log = structlog.get_logger(__name__)

COOKIE = "crew_session"
SESSION_SECONDS = 30 * 24 * 3600
_TOKEN_START = "crew_"  # noqa: S105 - how tokens begin, none itself
_MAX_SECRET = 200
# Reports on their way to the audit; past that many a flood of refusals is counted by its first ones.
_MAX_REPORTS = 50


def local_principal() -> auth_pb2.Principal:
    """The owner where no login is asked."""
    return auth_pb2.Principal(kind="local", id="local", name="local", scopes=OWNER_SCOPES)


class Login:
    """Finds out who calls and what they may do.

    Args:
        required: Whether a credential is asked for; without, callers who show no token are the owner.
        credentials: Answers of the orchestrator.
        auth: To tell the orchestrator of refusals.
    """

    def __init__(
        self, *, required: bool, credentials: Credentials, auth: auth_pb2_grpc.AuthAsyncStub
    ) -> None:
        self.required = required
        self.credentials = credentials
        self._auth = auth
        self._reports: set[asyncio.Task[None]] = set()

    def credential(self, scope: AsgiScope) -> Credential | None:
        """What the request shows; an ``Authorization`` header wins over the cookie."""
        return self.shown(header(scope, b"authorization"), session_of(scope))

    def shown(self, authorization: str | None, session: str | None = None) -> Credential | None:
        """The credential in an ``authorization`` value, else the session.

        Without a login other schemes than an API token of ours are passed over, as a proxy in front
        may use the header for itself.
        """
        scheme, _, value = (authorization or "").partition(" ")
        value = value.strip()
        if scheme.lower() == "bearer" and value and (self.required or value.startswith(_TOKEN_START)):
            return Credential("token", value[:_MAX_SECRET])
        if session and self.required:
            return Credential("session", session)
        return None

    async def principal(self, credential: Credential | None, address: str) -> auth_pb2.Principal | None:
        """Who holds the credential; None when nobody does and a login is asked.

        Raises:
            AioRpcError: The orchestrator cannot be asked.
        """
        if credential is None:
            return None if self.required else local_principal()
        return await self.credentials.principal(credential, address)

    async def admit(
        self, credential: Credential | None, address: str, scope: Scope, method: str
    ) -> auth_pb2.Principal | None:
        """Let a call of `method` through, or say why not. None: anybody, for a public method.

        Raises:
            Unauthenticated: No credential, or one that is not valid.
            Forbidden: A valid one without `scope`.
            AioRpcError: The orchestrator cannot be asked.
        """
        if scope == "internal":
            raise Forbidden("INTERNAL", "error.upstream.forbidden")
        principal = await self.principal(credential, address)
        if scope == "public":
            return principal
        if principal is None:
            reason = "NO_CREDENTIAL" if credential is None else "CREDENTIAL_NOT_VALID"
            key = "error.login.needed" if credential is None else "error.login.not_valid"
            raise Unauthenticated(reason, key)
        if scope not in principal.scopes:
            self._report(principal, address, scope, method)
            if scope == "owner":
                raise Forbidden("OWNER_ONLY", "error.login.owner_only")
            raise Forbidden("MISSING_SCOPE", "error.login.missing_scope", scope=scope)
        return principal

    def _report(self, principal: auth_pb2.Principal, address: str, scope: str, method: str) -> None:
        if len(self._reports) >= _MAX_REPORTS:
            return
        named = auth_pb2.Principal()
        named.CopyFrom(principal)
        named.address = address
        task = asyncio.create_task(self._send_report(named, scope, method))
        self._reports.add(task)
        task.add_done_callback(self._reports.discard)

    async def _send_report(self, principal: auth_pb2.Principal, scope: str, method: str) -> None:
        try:
            await self._auth.ReportDenied(
                auth_pb2.ReportDeniedRequest(principal=principal, method=method, scope=scope)
            )
        except grpc.aio.AioRpcError as error:
            _log.warning("a refusal is missing in the audit", code=error.code().name, method=method)


def session_of(scope: AsgiScope) -> str | None:
    """The session's secret in the request's cookies; None without one or with two that differ."""
    found: set[str] = set()
    for line in headers(scope, b"cookie"):
        for part in line.split(";"):
            name, _, value = part.strip().partition("=")
            if name == COOKIE and value:
                found.add(value[:_MAX_SECRET])
    return found.pop() if len(found) == 1 else None


def session_cookie(scope: AsgiScope, secret: str) -> str:
    """The ``Set-Cookie`` value that begins a session, or prolongs it (GTW-028)."""
    return _cookie(scope, secret, SESSION_SECONDS)


def ended_cookie(scope: AsgiScope) -> str:
    """The ``Set-Cookie`` value that ends a session."""
    return _cookie(scope, "", 0)


def _cookie(scope: AsgiScope, value: str, seconds: int) -> str:
    secure = "; Secure" if peer_of(scope).secure else ""
    return f"{COOKIE}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={seconds}{secure}"
