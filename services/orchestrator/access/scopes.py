"""The check of scopes in front of every method, whatever the gateway has checked before."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio

from services.common.api import ApiMethod, api_methods
from services.common.errors import Forbidden, Unauthenticated
from services.common.rpc import around_method, caller_of
from services.orchestrator.access.audit import AccessAudit
from services.orchestrator.access.principal import Principal, principal_of

_API = "/crew.v1."
# They hold a token of their own direction; people and programs come through them.
_TRUSTED_CALLERS = frozenset({"gateway", "cli"})


class ScopeGuard(grpc.aio.ServerInterceptor):
    """Lets a method run when its caller has the scope that the contract asks for (GTW-031).

    Stands behind the interceptor that checks direction tokens and turns errors into statuses.

    Args:
        audit: Told of refusals.
    """

    def __init__(self, audit: AccessAudit) -> None:
        self._audit = audit

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """Put the check around the method that was found."""
        handler = await continuation(handler_call_details)
        path = handler_call_details.method
        if handler is None or not path.startswith(_API):
            return handler
        # A method that declares nothing is not open, it is shut.
        method = api_methods().get(path)
        return around_method(handler, lambda context: self._admitted(method, path, context))

    @asynccontextmanager
    async def _admitted(
        self, method: ApiMethod | None, path: str, context: grpc.aio.ServicerContext[Any, Any]
    ) -> AsyncIterator[None]:
        if method is None:
            raise Forbidden("NO_SCOPE_DECLARED", "error.access.forbidden")
        await self.check(method, principal_of(context), caller_of())
        yield

    async def check(self, method: ApiMethod, who: Principal, caller: str) -> None:
        """Return when `who`, calling through the service `caller`, may call `method`.

        Raises:
            Unauthenticated: Nobody calls, and the method is not public.
            Forbidden: The scope is missing.
        """
        if method.scope == "public":
            return
        if method.scope == "internal":
            if caller in _TRUSTED_CALLERS:
                return
            raise Forbidden("INTERNAL", "error.access.forbidden")
        if who.kind == "nobody":
            raise Unauthenticated("NO_CREDENTIAL", "error.access.nobody")
        if method.scope not in who.scopes:
            await self._audit.denied(who, method.scope, method.path)
            if method.scope == "owner":
                raise Forbidden("OWNER_ONLY", "error.access.owner_only")
            raise Forbidden("MISSING_SCOPE", "error.access.missing_scope", scope=method.scope)
