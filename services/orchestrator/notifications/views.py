"""A notification as people and programs see it."""

from __future__ import annotations

from crew.v1 import notifications_pb2 as pb

from services.common.times import iso
from services.orchestrator.store.notifications import Notification


def notification_view(notification: Notification) -> pb.Notification:
    """One notification with whether anybody was shown it."""
    view = pb.Notification(
        id=notification.id,
        kind=notification.kind,
        cause=notification.cause,
        subject=notification.subject,
        text=notification.text,
        created_at=iso(notification.created_at),
        delivery=notification.delivery,
    )
    for name in ("read_at", "over_at"):
        if (moment := getattr(notification, name)) is not None:
            setattr(view, name, iso(moment))
    for name in ("approval_id", "conversation_id", "agent_id", "delivered_by"):
        if (value := getattr(notification, name)) is not None:
            setattr(view, name, value)
    return view
