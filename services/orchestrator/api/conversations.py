"""The service crew.v1.Conversations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import grpc.aio
from crew.v1 import conversations_pb2 as pb
from crew.v1 import conversations_pb2_grpc

from services.common.errors import Invalid, NotFound
from services.orchestrator.agents.agents import Agents
from services.orchestrator.agents.profile import MASTER_ID
from services.orchestrator.api.checks import id_of, limit_of
from services.orchestrator.calls.registry import ToolRegistry
from services.orchestrator.store import approvals, conversations, messages, queue, runs, turns
from services.orchestrator.store.pool import Connection, Database
from services.orchestrator.store.records import Conversation
from services.orchestrator.turns.activity import Activity
from services.orchestrator.turns.desk import TurnDesk
from services.orchestrator.turns.forking import Forking
from services.orchestrator.turns.views import conversation_view

Context = grpc.aio.ServicerContext[Any, Any]

_TITLE_CHARS = 200
_GRANTS = 200


class ConversationsServicer(conversations_pb2_grpc.ConversationsServicer):
    """Lists, opens, edits and removes conversations."""

    def __init__(
        self,
        *,
        database: Database,
        agents: Agents,
        desk: TurnDesk,
        activity: Activity,
        registry: ToolRegistry,
        forking: Forking,
    ) -> None:
        self._database = database
        self._agents = agents
        self._desk = desk
        self._activity = activity
        self._registry = registry
        self._forking = forking

    async def List(self, request: pb.ListConversationsRequest, context: Context) -> pb.ListConversationsReply:
        """Newest change first, without messages."""
        limit = limit_of(request, default=200)
        agent_id = request.agent_id if request.HasField("agent_id") else None
        async with self._database.snapshot() as connection:
            found = await conversations.newest(connection, agent_id=agent_id, limit=limit)
            ids = [conversation.id for conversation in found]
            running = await turns.running_among(connection, ids)
            pending = await approvals.pending_among(connection, ids)
            waiting = await queue.waiting_among(connection, ids)
        return pb.ListConversationsReply(
            conversations=[
                conversation_view(
                    conversation,
                    running=conversation.id in running,
                    queued=waiting.get(conversation.id, ()),
                    pending=pending.get(conversation.id),
                )
                for conversation in found
            ]
        )

    async def Create(self, request: pb.CreateConversationRequest, context: Context) -> pb.Conversation:
        """Open one on the web channel, for the master unless another agent is named (TRN-327)."""
        agent_id = request.agent_id if request.HasField("agent_id") else MASTER_ID
        agent = self._agents.get(agent_id)
        if agent is None:
            raise NotFound("NO_AGENT", "error.no_agent", id=agent_id[:80])
        title = _title(request.title) if request.HasField("title") else ""
        async with self._database.transaction() as connection:
            created = await conversations.create(
                connection,
                agent_id=agent.id,
                channel="web",
                title=title,
                autonomous=agent.autonomous,
                cost_cap_usd=agent.cost_cap_usd,
            )
        self._activity.conversation_changed(created.id, title=created.title)
        return conversation_view(created, running=False)

    async def Get(self, request: pb.GetConversationRequest, context: Context) -> pb.Conversation:
        """One conversation with its newest messages (FLD-075)."""
        limit = limit_of(request, default=50)
        before = request.before_seq if request.HasField("before_seq") else None
        async with self._database.snapshot() as connection:
            conversation = await _found(connection, request.id)
            return await _whole(connection, conversation, limit=limit, before_seq=before)

    async def Update(self, request: pb.UpdateConversationRequest, context: Context) -> pb.Conversation:
        """Change what the mask names; what it does not name stays (TRN-021)."""
        changes = _changes(request)
        named = set(request.update_mask.paths)
        async with self._database.transaction() as connection:
            conversation = await conversations.lock(connection, id_of("conversation", request.id))
            if conversation is None:
                raise NotFound("NO_CONVERSATION", "error.no_conversation", id=request.id)
            await conversations.update(connection, conversation.id, changes)
            if "auto_approve" in named:
                await conversations.set_grants(connection, conversation.id, _grants(request.auto_approve))
            changed = await conversations.get(connection, conversation.id)
            assert changed is not None
            view = await _whole(connection, changed, limit=50, before_seq=None)
        if "title" in changes:
            self._activity.conversation_changed(changed.id, title=changed.title)
        return view

    async def Delete(
        self, request: pb.DeleteConversationRequest, context: Context
    ) -> pb.DeleteConversationReply:
        """Remove it with its log, queue and requests; a running turn is stopped first (TRN-017 to 019)."""
        conversation_id = id_of("conversation", request.id)
        await self._desk.stop(conversation_id)
        async with self._database.transaction() as connection:
            if await conversations.lock(connection, conversation_id) is None:
                raise NotFound("NO_CONVERSATION", "error.no_conversation", id=request.id)
            closed = await runs.close_of_conversation(connection, conversation_id)
            await conversations.delete(connection, conversation_id)
        for run_id in closed:
            self._activity.forget(run_id)
        self._activity.conversation_changed(conversation_id, removed=True)
        await self._registry.release("conversation", conversation_id)
        return pb.DeleteConversationReply()

    async def Fork(self, request: pb.ForkConversationRequest, context: Context) -> pb.ForkConversationReply:
        """Go on from an earlier place in a conversation of its own (TRN-023, TRN-032)."""
        fork = await self._forking.fork(id_of("conversation", request.id), request.before_message_id)
        self._activity.conversation_changed(fork.conversation.id, title=fork.conversation.title)
        async with self._database.snapshot() as connection:
            conversation = await _found(connection, fork.conversation.id)
            view = await _whole(connection, conversation, limit=50, before_seq=None)
        return pb.ForkConversationReply(conversation=view, text=fork.text)


async def _found(connection: Connection, text: str) -> Conversation:
    conversation = await conversations.get(connection, id_of("conversation", text))
    if conversation is None:
        raise NotFound("NO_CONVERSATION", "error.no_conversation", id=text)
    return conversation


async def _whole(
    connection: Connection, conversation: Conversation, *, limit: int, before_seq: int | None
) -> pb.Conversation:
    page, earlier = await messages.page(connection, conversation.id, limit=limit, before_seq=before_seq)
    return conversation_view(
        conversation,
        running=await turns.running(connection, conversation.id) is not None,
        queued=await queue.waiting(connection, conversation.id),
        pending=await approvals.pending(connection, conversation.id),
        messages=page,
        has_earlier=earlier,
        grants=await conversations.uses(connection, conversation.id),
    )


def _changes(request: pb.UpdateConversationRequest) -> Mapping[str, Any]:
    changes: dict[str, Any] = {}
    for name in request.update_mask.paths:
        match name:
            case "title":
                changes[name] = _title(request.title)
            case "autonomous":
                changes[name] = request.autonomous
            case "cost_cap_usd":
                if not 0 <= request.cost_cap_usd <= 1_000_000:
                    raise Invalid("BAD_COST_CAP", "error.bad_cost_cap")
                changes[name] = request.cost_cap_usd
            case "skills":
                changes[name] = list(request.skills)
            case "auto_approve":
                pass
            case _:
                raise Invalid("UNKNOWN_FIELD", "error.unknown_field", name=name[:80])
    return changes


def _title(text: str) -> str:
    title = " ".join(text.split())
    if not title or len(title) > _TITLE_CHARS:
        raise Invalid("BAD_TITLE", "error.bad_title", limit=_TITLE_CHARS)
    return title


def _grants(names: Any) -> list[str]:
    if len(names) > _GRANTS or any(not name or len(name) > 300 for name in names):
        raise Invalid("BAD_GRANTS", "error.bad_grants", limit=_GRANTS)
    return list(names)
