"""The service crew.v1.Crew: automation over the same application functions as the web (GTW-270)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import grpc.aio
from crew.v1 import crew_pb2 as pb
from crew.v1 import crew_pb2_grpc, events_pb2, turns_pb2

from services.common.errors import Invalid
from services.orchestrator.access import principal_of
from services.orchestrator.api.checks import id_of
from services.orchestrator.api.runs import with_steps
from services.orchestrator.store import runs
from services.orchestrator.store.pool import Database
from services.orchestrator.turns import commands
from services.orchestrator.turns.activity import Activity
from services.orchestrator.turns.desk import TurnDesk
from services.orchestrator.turns.peers import WatchedTurn

Context = grpc.aio.ServicerContext[Any, Any]
Events = AsyncIterator[events_pb2.TurnEvent]

_PAGE = 50
_MOST_PAGE = 200


class CrewServicer(crew_pb2_grpc.CrewServicer):
    """Send, Watch, Stop, Decide, Answer, ListRuns."""

    def __init__(self, *, desk: TurnDesk, database: Database, activity: Activity) -> None:
        self._desk = desk
        self._activity = activity
        self._database = database

    async def Send(self, request: pb.SendRequest, context: Context) -> Events:
        """A message through the same gate as any other; the run's source is ``grpc:<label>``."""
        label = commands.check_source(request.label) if request.label else "api"
        commands.read(request.text)
        conversation_id = await self._desk.conversation_for(
            agent_id=request.agent_id or None,
            channel=commands.check_channel(request.channel or "api"),
            conversation_id=(
                id_of("conversation", request.conversation_id) if request.conversation_id else None
            ),
        )
        stream = await self._desk.send(
            conversation_id,
            request.text,
            source=f"grpc:{label}",
            request_id=request.request_id or None,
        )
        await context.send_initial_metadata(())
        ended = False
        try:
            async for event in stream.events(private=True):
                yield event
            ended = True
        finally:
            if not ended and request.cancel_on_disconnect:
                await self._desk.stop(conversation_id)

    async def Watch(self, request: pb.WatchRequest, context: Context) -> Events:
        """The running turn; with `wait`, the next one when none runs (GTW-272)."""
        conversation_id = id_of("conversation", request.conversation_id)
        stream: WatchedTurn | None = await self._desk.watch(conversation_id)
        await context.send_initial_metadata(())
        if stream is None and request.wait:
            stream = await self._desk.next_turn(conversation_id)
        if stream is not None:
            async for event in stream.events():
                yield event

    async def Stop(self, request: pb.StopRequest, context: Context) -> turns_pb2.StopReply:
        """Empty the queue and stop the turn."""
        stopped = await self._desk.stop(id_of("conversation", request.conversation_id))
        return turns_pb2.StopReply(cleared=stopped.cleared, cancelled=stopped.cancelled)

    async def Decide(self, request: pb.DecideRequest, context: Context) -> Events:
        """Approve or deny; the answer is the resumed turn."""
        stream = await self._desk.decide(
            id_of("approval", request.approval_id),
            conversation_id=None,
            approve=request.approve,
            always=request.always,
            by=principal_of(context).decider,
        )
        await context.send_initial_metadata(())
        async for event in stream.events():
            yield event

    async def Answer(self, request: pb.AnswerRequest, context: Context) -> Events:
        """Answer a question; the answer is the resumed turn."""
        stream = await self._desk.answer(
            id_of("approval", request.approval_id),
            conversation_id=None,
            answer=request.answer,
            by=principal_of(context).decider,
        )
        await context.send_initial_metadata(())
        async for event in stream.events():
            yield event

    async def ListRuns(self, request: pb.ListRunsRequest, context: Context) -> pb.ListRunsReply:
        """Runs newest first, in pages that stay stable while runs are added (GTW-280)."""
        size = request.page_size or _PAGE
        if not 1 <= size <= _MOST_PAGE:
            raise Invalid("BAD_LIMIT", "error.bad_limit", most=_MOST_PAGE)
        async with self._database.snapshot() as connection:
            found = await runs.newest(
                connection,
                agent_id=request.agent_id or None,
                conversation_id=(
                    id_of("conversation", request.conversation_id) if request.conversation_id else None
                ),
                status=request.status or None,
                limit=size + 1,
                before=_read_token(request.page_token),
            )
            page = await with_steps(connection, self._activity, found[:size])
        following = f"{found[size - 1].n:x}" if len(found) > size else ""
        return pb.ListRunsReply(runs=page, next_page_token=following)


def _read_token(text: str) -> int | None:
    """The number of the last run of the page before, which a token is."""
    if not text:
        return None
    if not re.fullmatch("[0-9a-f]{1,15}", text):
        raise Invalid("BAD_PAGE_TOKEN", "error.bad_page_token")
    return int(text, 16)
