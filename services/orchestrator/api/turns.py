"""The service crew.v1.Turns."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc.aio
from crew.v1 import events_pb2, turns_pb2_grpc
from crew.v1 import turns_pb2 as pb

from services.common.errors import Unavailable
from services.common.rpc import caller_of
from services.common.wording import Catalogue, Locale
from services.orchestrator.access import principal_of
from services.orchestrator.api.checks import id_of
from services.orchestrator.turns import commands
from services.orchestrator.turns.desk import TurnDesk
from services.orchestrator.turns.peers import WatchedTurn

Context = grpc.aio.ServicerContext[Any, Any]
Events = AsyncIterator[events_pb2.TurnEvent]


class TurnsServicer(turns_pb2_grpc.TurnsServicer):
    """Sends, watches, stops and decides for the web and for simple programs."""

    def __init__(self, *, desk: TurnDesk, catalogue: Catalogue, locale: Locale) -> None:
        self._desk = desk
        self._catalogue = catalogue
        self._locale: Locale = locale

    async def Inbound(self, request: pb.InboundRequest, context: Context) -> pb.InboundReply:
        """One message, answered when its turn ended, paused or queued (TRN-039 to 049)."""
        source = commands.check_source(request.source if request.HasField("source") else "api")
        channel = request.channel if request.HasField("channel") else "api"
        commands.read(request.text)
        conversation_id = await self._desk.conversation_for(
            agent_id=request.agent_id if request.HasField("agent_id") else None,
            channel=commands.check_channel(channel),
            conversation_id=(
                id_of("conversation", request.conversation_id) if request.conversation_id else None
            ),
        )
        stream = await self._desk.send(conversation_id, request.text, source=source)
        return await self._joined(stream, conversation_id)

    async def Send(self, request: pb.SendMessageRequest, context: Context) -> Events:
        """A message of the person at the page."""
        stream = await self._desk.send(
            id_of("conversation", request.conversation_id),
            request.text,
            source="chat",
            request_id=request.request_id if request.HasField("request_id") else None,
        )
        async for event in _accepted(stream, context, private=True):
            yield event

    async def Continue(self, request: pb.ContinueTurnRequest, context: Context) -> Events:
        """Go on with a reply that broke off; the answer is the new turn (FLD-013)."""
        stream = await self._desk.go_on(id_of("conversation", request.conversation_id))
        async for event in _accepted(stream, context):
            yield event

    async def Watch(self, request: pb.WatchTurnRequest, context: Context) -> Events:
        """The running turn from its beginning, or from behind the last event seen (GTW-134, GTW-141)."""
        run_id, seq = _last_event(request)
        stream = await self._desk.watch(
            id_of("conversation", request.conversation_id),
            last_run_id=run_id,
            # Another replica asks for what runs here.
            here=caller_of() == "orchestrator",
        )
        if stream is None:
            await context.send_initial_metadata((("http-status", "204"),))
            return
        after = seq if run_id == stream.run_id else None
        async for event in _accepted(stream, context, after=after):
            yield event

    async def Stop(self, request: pb.StopTurnRequest, context: Context) -> pb.StopReply:
        """Empty the queue and stop the turn (TRN-088)."""
        stopped = await self._desk.stop(id_of("conversation", request.conversation_id))
        return pb.StopReply(cleared=stopped.cleared, cancelled=stopped.cancelled)

    async def Decide(self, request: pb.DecideApprovalRequest, context: Context) -> Events:
        """Approve or deny a call; the answer is the resumed turn."""
        stream = await self._desk.decide(
            id_of("approval", request.approval_id),
            conversation_id=(
                id_of("conversation", request.conversation_id) if request.conversation_id else None
            ),
            approve=request.approve,
            always=request.always,
            by=principal_of(context).decider,
        )
        async for event in _accepted(stream, context):
            yield event

    async def Answer(self, request: pb.AnswerQuestionRequest, context: Context) -> Events:
        """Answer a question; the answer is the resumed turn."""
        stream = await self._desk.answer(
            id_of("approval", request.approval_id),
            conversation_id=(
                id_of("conversation", request.conversation_id) if request.conversation_id else None
            ),
            answer=request.answer,
            by=principal_of(context).decider,
        )
        async for event in _accepted(stream, context):
            yield event

    async def _joined(self, stream: WatchedTurn, conversation_id: str) -> pb.InboundReply:
        """The turn's words in order, ending with the notice of how it ended (TRN-043)."""
        said: list[str] = []
        reply = pb.InboundReply(
            conversation_id=conversation_id, agent_id=await self._desk.agent_of(conversation_id)
        )
        async for event in stream.events():
            match event.WhichOneof("event"):
                case "assistant_message":
                    if event.assistant_message.message.content:
                        said.append(event.assistant_message.message.content)
                case "done":
                    reply.status, reply.steps = "done", event.done.steps
                case "halted":
                    reply.status, reply.steps = "halted", event.halted.steps
                    said.append(event.halted.text)
                case "error":
                    reply.status = "error"
                    said.append(event.error.message)
                case "approval_required":
                    reply.status = "approval_required"
                    said.append(self._waiting_notice(event))
                case "queued":
                    reply.status, reply.queued = "queued", True
                    said.append(self._catalogue.text(self._locale, "turn.queued"))
        if not stream.concluded:
            raise Unavailable("TURN_MOVED", "error.turn_moved", id=conversation_id)
        reply.text = "\n\n".join(said)
        return reply

    def _waiting_notice(self, event: events_pb2.TurnEvent) -> str:
        approval = event.approval_required.approval
        key = "turn.waits_for_answer" if approval.kind == "question" else "turn.waits_for_approval"
        return self._catalogue.text(self._locale, key, what=approval.summary, tool=approval.tool)


async def _accepted(
    stream: WatchedTurn, context: Context, *, after: int | None = None, private: bool = False
) -> Events:
    """Say that the request stands, then send the events; a stream that moved elsewhere ends as such."""
    await context.send_initial_metadata((("http-status", "200"),))
    async for event in stream.events(after=after, private=private):
        yield event
    if not stream.concluded:
        raise Unavailable("TURN_MOVED", "error.turn_moved", id=stream.conversation_id)


def _last_event(request: pb.WatchTurnRequest) -> tuple[str | None, int]:
    run_id, colon, seq = request.last_event_id.rpartition(":")
    return (run_id, int(seq)) if colon and seq.isascii() and seq.isdigit() and len(seq) < 12 else (None, 0)
