"""Logins, sessions and API tokens over gRPC."""

from __future__ import annotations

from typing import Any

import grpc.aio
from crew.v1 import auth_pb2, auth_pb2_grpc

from services.common.times import iso
from services.orchestrator.access import ApiTokens, Logins, principal_of
from services.orchestrator.access.audit import AccessAudit
from services.orchestrator.access.logins import Opened
from services.orchestrator.access.principal import from_message
from services.orchestrator.store.access import TokenRow

Context = grpc.aio.ServicerContext[Any, Any]


class AuthServicer(auth_pb2_grpc.AuthServicer):
    """Translates; the rules are in `services.orchestrator.access`."""

    def __init__(self, logins: Logins, tokens: ApiTokens, audit: AccessAudit) -> None:
        self._logins = logins
        self._tokens = tokens
        self._audit = audit

    async def Verify(self, request: auth_pb2.VerifyRequest, context: Context) -> auth_pb2.Principal:
        """Who holds a credential."""
        if request.WhichOneof("credential") == "session":
            found = await self._logins.verify(request.session, request.address)
        else:
            found = await self._tokens.verify(request.token, request.address)
        return auth_pb2.Principal() if found is None else found.message()

    async def Login(self, request: auth_pb2.LoginRequest, context: Context) -> auth_pb2.LoginReply:
        """A password against a session."""
        return _login_reply(await self._logins.log_in(request.password, request.address))

    async def SetUp(self, request: auth_pb2.SetUpRequest, context: Context) -> auth_pb2.LoginReply:
        """The first password against a session."""
        return _login_reply(await self._logins.set_up(request.setup_token, request.password, request.address))

    async def OpenSetUp(
        self, request: auth_pb2.OpenSetUpRequest, context: Context
    ) -> auth_pb2.OpenSetUpReply:
        """The token of the first run."""
        opened = await self._logins.open_set_up()
        if opened is None:
            return auth_pb2.OpenSetUpReply()
        return auth_pb2.OpenSetUpReply(setup_token=opened.secret, expires_at=iso(opened.expires_at))

    async def ReportDenied(
        self, request: auth_pb2.ReportDeniedRequest, context: Context
    ) -> auth_pb2.ReportDeniedReply:
        """The gateway refused a call."""
        await self._audit.denied(from_message(request.principal), request.scope, request.method)
        return auth_pb2.ReportDeniedReply()

    async def Logout(self, request: auth_pb2.LogoutRequest, context: Context) -> auth_pb2.LogoutReply:
        """End a session."""
        await self._logins.log_out(request.session, request.address)
        return auth_pb2.LogoutReply()

    async def ListTokens(
        self, request: auth_pb2.ListTokensRequest, context: Context
    ) -> auth_pb2.ListTokensReply:
        """Every API token."""
        return auth_pb2.ListTokensReply(tokens=[_token_info(row) for row in await self._tokens.list()])

    async def CreateToken(
        self, request: auth_pb2.CreateTokenRequest, context: Context
    ) -> auth_pb2.CreatedToken:
        """Make an API token."""
        days = request.expires_in_days if request.HasField("expires_in_days") else None
        made = await self._tokens.create(request.name, request.scopes, days, principal_of(context))
        info = _token_info(made.row)
        return auth_pb2.CreatedToken(
            id=info.id,
            name=info.name,
            scopes=info.scopes,
            created_at=info.created_at,
            expires_at=info.expires_at if info.HasField("expires_at") else None,
            token=made.secret,
        )

    async def DeleteToken(
        self, request: auth_pb2.DeleteTokenRequest, context: Context
    ) -> auth_pb2.DeleteTokenReply:
        """Delete an API token."""
        await self._tokens.delete(request.id, principal_of(context))
        return auth_pb2.DeleteTokenReply()

    async def EndSessions(
        self, request: auth_pb2.EndSessionsRequest, context: Context
    ) -> auth_pb2.EndSessionsReply:
        """End every other session."""
        await self._logins.end_others(principal_of(context))
        return auth_pb2.EndSessionsReply()


def _login_reply(opened: Opened) -> auth_pb2.LoginReply:
    return auth_pb2.LoginReply(session=opened.secret, expires_at=iso(opened.expires_at))


def _token_info(row: TokenRow) -> auth_pb2.TokenInfo:
    return auth_pb2.TokenInfo(
        id=row.id,
        name=row.name,
        scopes=row.scopes,
        created_at=iso(row.created_at),
        last_used_at=None if row.last_used_at is None else iso(row.last_used_at),
        expires_at=None if row.expires_at is None else iso(row.expires_at),
    )
