"""Stored records as people and programs see them."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
from crew.v1 import approvals_pb2, conversations_pb2

from services.common.times import iso
from services.orchestrator.calls import grants
from services.orchestrator.store.queue import QueuedItem
from services.orchestrator.store.records import Approval, Conversation, Message


def message_view(message: Message) -> conversations_pb2.Message:
    """A message; what the provider needs back stays here (FLD-001)."""
    view = conversations_pb2.Message(
        id=message.id,
        seq=message.seq,
        role=message.role,
        author=message.author,
        content=message.content,
        created_at=iso(message.created_at),
        details=message.details,
        is_error=message.is_error,
        context=message.context or "null",
        cost_estimated=message.cost_estimated,
    )
    for call in message.tool_calls:
        shown = view.tool_calls.add(id=call.id, name=call.name, arguments=call.arguments)
        if call.broken is not None:
            shown.broken = call.broken
    for field in ("tool_call_id", "name", "provider", "model", "cost_usd"):
        if (value := getattr(message, field)) is not None:
            setattr(view, field, value)
    for field in ("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens"):
        if (value := getattr(message.usage, field)) is not None:
            setattr(view, field, value)
    return view


def always_allows(approval: Approval) -> str:
    """The narrowest standing permission that covers the call: what "always" gives (FLD-021)."""
    return grants.offered(approval.tool, orjson.loads(approval.arguments))[0]


def approval_view(approval: Approval) -> approvals_pb2.Approval:
    """A request with every argument as it will run (TRN-218)."""
    view = approvals_pb2.Approval(
        id=approval.id,
        conversation_id=approval.conversation_id,
        agent_id=approval.agent_id,
        run_id=approval.run_id,
        kind=approval.kind,
        tool=approval.tool,
        tool_call_id=approval.tool_call_id,
        arguments=approval.arguments,
        reason=approval.reason,
        options=approval.options,
        status=approval.status,
        created_at=iso(approval.created_at),
        expires_at=iso(approval.expires_at),
        summary=approval.summary,
        preview=approval.preview,
        may_always=approval.may_always,
        delivery=approval.delivery,
    )
    if approval.may_always:
        view.always_allows = always_allows(approval)
    if approval.review is not None:
        review = approval.review
        view.review.verdict, view.review.reason, view.review.route = (
            review.verdict,
            review.reason,
            review.route,
        )
    if approval.answer is not None:
        view.answer = approval.answer
    if approval.decided_at is not None:
        view.decided_at = iso(approval.decided_at)
    if approval.decided_by is not None:
        view.decided_by = approval.decided_by
    return view


def conversation_view(
    conversation: Conversation,
    *,
    running: bool,
    queued: Sequence[QueuedItem] = (),
    pending: Approval | None = None,
    messages: Sequence[Message] = (),
    has_earlier: bool = False,
) -> conversations_pb2.Conversation:
    """A conversation with what waits in it."""
    view = conversations_pb2.Conversation(
        id=conversation.id,
        agent_id=conversation.agent_id,
        channel=conversation.channel,
        title=conversation.title,
        created_at=iso(conversation.created_at),
        updated_at=iso(conversation.updated_at),
        autonomous=conversation.autonomous,
        skills=conversation.skills,
        auto_approve=conversation.auto_approve,
        cost_cap_usd=conversation.cost_cap_usd,
        spent_usd=conversation.spent_usd,
        unknown_cost_calls=conversation.unknown_cost_calls,
        over_budget=conversation.over_budget,
        running=running,
        has_earlier=has_earlier,
    )
    if conversation.approval_ttl_seconds is not None:
        view.approval_ttl_seconds = conversation.approval_ttl_seconds
    if conversation.forked_from is not None:
        view.forked_from = conversation.forked_from
    for item in queued:
        view.queued.add(item_id=item.id, kind=item.kind, position=item.position, text=item.text)
    if pending is not None:
        view.pending_approval.CopyFrom(approval_view(pending))
    for message in messages:
        view.messages.add().CopyFrom(message_view(message))
    return view
