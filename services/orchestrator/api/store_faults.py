"""What callers are told when the database is away or takes no writes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio

from services.common.rpc import around_method
from services.orchestrator.store.pool import DatabaseLost, WriteRefused, database_unavailable
from services.orchestrator.store.space import Space, writes_refused


class StoreFaults(grpc.aio.ServerInterceptor):
    """Turns faults of the database into refusals that say what was kept and what to do (FLD-051).

    Stands behind the interceptor that turns errors into statuses.

    Args:
        space: Told when Postgres refuses writes.
    """

    def __init__(self, space: Space) -> None:
        self._space = space

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """Put the translation around the method that was found."""
        handler = await continuation(handler_call_details)
        return handler and around_method(handler, lambda _: self._translated())

    @asynccontextmanager
    async def _translated(self) -> AsyncIterator[None]:
        try:
            yield
        except WriteRefused as error:
            self._space.refused(error)
            raise writes_refused() from error
        except DatabaseLost as error:
            raise database_unavailable() from error
