"""The service crew.v1.Notifications."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import grpc.aio
from crew.v1 import notifications_pb2 as pb
from crew.v1 import notifications_pb2_grpc

from services.common.errors import Invalid
from services.orchestrator.api.checks import limit_of
from services.orchestrator.notifications import notification_view
from services.orchestrator.store import notifications
from services.orchestrator.store.pool import Database

Context = grpc.aio.ServicerContext[Any, Any]

_MOST_IDS = 500
_SURFACE = re.compile(r"[A-Za-z0-9-]{1,40}")


class NotificationsServicer(notifications_pb2_grpc.NotificationsServicer):
    """What the owner was told, and what of it somebody has seen."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def List(self, request: pb.ListNotificationsRequest, context: Context) -> pb.ListNotificationsReply:
        """Newest first (PIP-113)."""
        limit = limit_of(request, default=50)
        async with self._database.connection() as connection:
            found = await notifications.newest(connection, limit=limit, unread=request.unread)
            unread = await notifications.unread(connection)
        return pb.ListNotificationsReply(
            notifications=[notification_view(each) for each in found], unread=unread
        )

    async def MarkRead(
        self, request: pb.MarkNotificationsReadRequest, context: Context
    ) -> pb.MarkNotificationsReadReply:
        """Named ones, or all there are."""
        ids = _ids(request.ids)
        async with self._database.connection() as connection:
            await notifications.mark_read(connection, ids)
            return pb.MarkNotificationsReadReply(unread=await notifications.unread(connection))

    async def Confirm(
        self, request: pb.ConfirmNotificationsRequest, context: Context
    ) -> pb.ConfirmNotificationsReply:
        """A surface shows them to a person (FLD-024)."""
        if not _SURFACE.fullmatch(request.surface):
            raise Invalid("BAD_SURFACE", "error.notifications.bad_surface")
        if not request.ids:
            raise Invalid("NO_IDS", "error.notifications.no_ids")
        async with self._database.connection() as connection:
            count = await notifications.confirm(connection, _ids(request.ids), request.surface)
        return pb.ConfirmNotificationsReply(confirmed=count)


def _ids(written: Sequence[str]) -> list[str]:
    if len(written) > _MOST_IDS:
        raise Invalid("TOO_MANY_IDS", "error.notifications.too_many", most=_MOST_IDS)
    try:
        return [str(UUID(each)) for each in written]
    except ValueError:
        raise Invalid("BAD_ID", "error.notifications.bad_id") from None
