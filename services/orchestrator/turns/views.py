"""Stored records as people and programs see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import orjson
from crew.v1 import approvals_pb2, conversations_pb2

from services.common.times import iso
from services.common.toolhost import exact_json
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
        cost_estimated=message.cost_estimated,
    )
    if message.role == "tool":
        _put_script(view, message.context)
    else:
        view.context = _without_memory(message.context or "")
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


def _without_memory(context: str) -> str:
    """Notes of a message without those of memory, which people read elsewhere (AGT-193, TRN-313)."""
    if "turn_notes" not in context:
        return context
    notes = exact_json.loads_object(context)
    notes.pop("turn_notes", None)
    return exact_json.dumps(notes) if notes else ""


def _put_script(view: conversations_pb2.Message, context: str | None) -> None:
    """What a script's stored message says of its calls (TRN-308); other tool messages say nothing."""
    if context is None:
        return
    record = exact_json.loads_object(context)
    view.calls = exact_json.dumps(record["calls"])
    view.received_chars = record["received_chars"]
    view.printed_chars = record["printed_chars"]


def always_allows(approval: Approval) -> str | None:
    """The narrowest standing permission that covers the call: what "always" gives (FLD-021).

    None: it is not offered.
    """
    if not approval.may_always:
        return None
    return next(iter(grants.offered(approval.tool, orjson.loads(approval.arguments))), None)


def approval_view(approval: Approval) -> approvals_pb2.Approval:
    """A request with every argument as it will run (TRN-218)."""
    allows = always_allows(approval)
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
        may_always=allows is not None,
        delivery=approval.delivery,
    )
    if allows is not None:
        view.always_allows = allows
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
    grants: Mapping[str, int] | None = None,
) -> conversations_pb2.Conversation:
    """A conversation with what waits in it, and how often each grant was used."""
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
    for allows, uses in (grants or {}).items():
        view.grants.add(allows=allows, uses=uses)
    return view
