"""What callers are told while Postgres does not answer, or takes no writes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import structlog

from services.common.rpc import around_method
from services.orchestrator.store.pool import DatabaseLost, WriteRefused, database_unavailable
from services.orchestrator.store.space import Space, writes_refused

log = structlog.get_logger(__name__)


class DatabaseOutage(grpc.aio.ServerInterceptor):
    """Makes a lost database a refusal that can be tried again, not a fault of our own.

    Stands behind the interceptor that turns errors into statuses.

    Args:
        space: Told when Postgres refuses a write (FLD-051).
    """

    def __init__(self, space: Space) -> None:
        self._space = space

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """Wrap the method that was found."""
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        return None if handler is None else around_method(handler, lambda _: self._translated(method))

    @asynccontextmanager
    async def _translated(self, method: str) -> AsyncIterator[None]:
        try:
            yield
        except WriteRefused as error:
            self._space.refused(error)
            raise writes_refused() from error
        except DatabaseLost as error:
            log.warning("method_lost_database", method=method, error=type(error).__name__)
            raise database_unavailable() from error
