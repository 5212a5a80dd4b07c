"""The service crew.v1.Approvals."""

from __future__ import annotations

from typing import Any

import grpc.aio
from crew.v1 import approvals_pb2 as pb
from crew.v1 import approvals_pb2_grpc

from services.orchestrator.api.checks import limit_of
from services.orchestrator.store import approvals
from services.orchestrator.store.pool import Database
from services.orchestrator.turns.views import approval_view

Context = grpc.aio.ServicerContext[Any, Any]


class ApprovalsServicer(approvals_pb2_grpc.ApprovalsServicer):
    """Lists requests; deciding is part of crew.v1.Turns."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def List(self, request: pb.ListApprovalsRequest, context: Context) -> pb.ListApprovalsReply:
        """Decided requests, newest decision first (TRN-216)."""
        limit = limit_of(request, default=50)
        async with self._database.connection() as connection:
            found = await approvals.decided(connection, limit=limit)
        return pb.ListApprovalsReply(approvals=[approval_view(approval) for approval in found])

    async def ListWaiting(
        self, request: pb.ListWaitingApprovalsRequest, context: Context
    ) -> pb.ListApprovalsReply:
        """Requests that wait for a person, oldest first."""
        async with self._database.connection() as connection:
            found = await approvals.all_pending(connection)
        return pb.ListApprovalsReply(approvals=[approval_view(approval) for approval in found])
