"""The service crew.v1.Runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import grpc.aio
from crew.v1 import attachment_pb2, runs_pb2_grpc
from crew.v1 import runs_pb2 as pb

from services.common.errors import Invalid, LimitReached, NotFound
from services.orchestrator.api.checks import id_of, limit_of
from services.orchestrator.store import runs
from services.orchestrator.store.pool import Connection, Database
from services.orchestrator.turns.activity import Activity
from services.orchestrator.turns.recorder import run_message
from services.orchestrator.turns.trajectory.export import Format, TrajectoryExport

Context = grpc.aio.ServicerContext[Any, Any]

# Watchers of the activity stream at once.
_WATCHERS = 200
_FORMATS: dict[str, Format] = {"json": "json", "md": "md"}


class RunsServicer(runs_pb2_grpc.RunsServicer):
    """The record of every turn, stored and live."""

    def __init__(self, *, database: Database, activity: Activity, trajectories: TrajectoryExport) -> None:
        self._database = database
        self._activity = activity
        self._trajectories = trajectories

    async def List(self, request: pb.RunsRequest, context: Context) -> pb.RunsReply:
        """Newest first; the limit counts what the filters leave (TRN-292)."""
        limit = limit_of(request, default=100)
        conversation_id = id_of("conversation", request.conversation_id) if request.conversation_id else None
        async with self._database.snapshot() as connection:
            found = await runs.newest(
                connection,
                agent_id=request.agent_id or None,
                conversation_id=conversation_id,
                status=request.status or None,
                limit=limit,
            )
            return pb.RunsReply(runs=await with_steps(connection, self._activity, runs.as_listed(found)))

    async def Get(self, request: pb.GetRunRequest, context: Context) -> pb.Run:
        """One run with its steps, also when no list holds it any more (TRN-334)."""
        run_id = id_of("run", request.id)
        if live := self._activity.live(run_id):
            return live
        async with self._database.connection() as connection:
            run = await runs.get(connection, run_id)
            if run is None:
                raise NotFound("NO_RUN", "error.no_run", id=run_id)
            steps = await runs.steps(connection, [run_id])
        return run_message(run, steps[run_id])

    async def Trajectory(self, request: pb.TrajectoryRequest, context: Context) -> attachment_pb2.Attachment:
        """One run as a file (TRN-309)."""
        form = _FORMATS.get(request.format or "json")
        if form is None:
            raise Invalid("BAD_FORMAT", "error.bad_trajectory_format")
        file = await self._trajectories.export(id_of("run", request.id), form, full=request.full)
        return attachment_pb2.Attachment(
            file_name=file.name, content_type=file.content_type, content=file.content
        )

    async def Activity(
        self, request: pb.ActivityRequest, context: Context
    ) -> AsyncIterator[pb.ActivityFrame]:
        """A snapshot, then frames at step boundaries (TRN-286, TRN-287)."""
        if self._activity.watchers >= _WATCHERS:
            raise LimitReached("TOO_MANY_WATCHERS", "error.too_many_watchers", limit=_WATCHERS)
        await context.send_initial_metadata((("http-status", "200"),))
        async for frame in self._activity.frames():
            yield frame


async def with_steps(connection: Connection, activity: Activity, found: Sequence[runs.Run]) -> list[pb.Run]:
    """Runs with their steps, in the order given; those that are live here as they are now."""
    live = {run.id: known for run in found if (known := activity.live(run.id))}
    steps = await runs.steps(connection, [run.id for run in found if run.id not in live])
    return [live.get(run.id) or run_message(run, steps[run.id]) for run in found]
