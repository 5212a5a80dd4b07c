"""The record of one run: its steps as they open and end, stored and shown at those moments."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from crew.v1 import runs_pb2
from google.protobuf import json_format

from services.common.times import iso, utc_now
from services.orchestrator.store import runs
from services.orchestrator.store.pool import Connection
from services.orchestrator.turns.activity import Activity


def run_message(run: runs.Run, steps: Sequence[str] = ()) -> runs_pb2.Run:
    """A stored run as its API message; `steps` are the stored JSON texts."""
    message = runs_pb2.Run(
        id=run.id,
        agent_id=run.agent_id,
        source=run.source,
        conversation_id=run.conversation_id,
        status=run.status,
        summary=run.summary,
        started_at=iso(run.started_at),
        cost_usd=run.cost_usd,
        unknown_cost_calls=run.unknown_cost_calls,
    )
    if run.after_seq is not None:
        message.after_seq = run.after_seq
    if run.finished_at:
        message.finished_at = iso(run.finished_at)
    for body in steps:
        json_format.Parse(body, message.steps.add(), ignore_unknown_fields=True)
    return message


class RunRecorder:
    """Keeps one run's record while its turn is here.

    A step is opened in memory and shown at once; `write` stores it, in the transaction that makes
    true what it says.
    """

    def __init__(
        self,
        message: runs_pb2.Run,
        activity: Activity,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.run = message
        self._activity = activity
        self._clock = clock
        self._opened: dict[int, float] = {}

    def open(self, kind: str, **fields: Any) -> runs_pb2.RunStep:
        """Begin a step and show it."""
        step = self.run.steps.add(kind=kind, index=len(self.run.steps), started_at=iso(utc_now()), **fields)
        self._opened[step.index] = self._clock()
        self._activity.step_changed(self.run, step)
        return step

    def note(self, kind: str, **fields: Any) -> runs_pb2.RunStep:
        """A step that has no duration."""
        step = self.run.steps.add(kind=kind, index=len(self.run.steps), started_at=iso(utc_now()), **fields)
        self._activity.step_changed(self.run, step)
        return step

    def changed(self, step: runs_pb2.RunStep) -> None:
        """Show what an open step says by now."""
        self._activity.step_changed(self.run, step)

    def close(self, step: runs_pb2.RunStep, *, ms: int | None = None, **fields: Any) -> None:
        """End a step and show it; its duration is never negative (TRN-160)."""
        opened = self._opened.pop(step.index, None)
        if ms is not None:
            step.ms = ms
        elif opened is not None:
            step.ms = max(0, round((self._clock() - opened) * 1000))
        else:
            started = datetime.fromisoformat(step.started_at)
            step.ms = max(0, round((datetime.now(UTC) - started).total_seconds() * 1000))
        for name, value in fields.items():
            if value is not None:
                setattr(step, name, value)
        self._activity.step_changed(self.run, step)

    def unfinished(self, kind: str) -> runs_pb2.RunStep | None:
        """The last step of a kind that has not ended, such as the wait of a resumed run."""
        for step in reversed(self.run.steps):
            if step.kind == kind and not step.HasField("ms"):
                return step
        return None

    def has(self, kind: str) -> bool:
        """Whether the run has a step of this kind, ended or not."""
        return any(step.kind == kind for step in self.run.steps)

    def drop(self, step: runs_pb2.RunStep) -> None:
        """Take back the last step: what it announced did not come to be."""
        if self.run.steps and self.run.steps[-1].index == step.index:
            self._opened.pop(step.index, None)
            del self.run.steps[-1]

    async def write(self, connection: Connection, *steps: runs_pb2.RunStep) -> None:
        """Store steps as they are now."""
        told = {step.index: (step.index, step.kind, step_json(step)) for step in steps}
        await runs.put_steps(connection, self.run.id, list(told.values()))

    def spent(self, cost_usd: float | None, unknown_calls: int) -> None:
        """Count money in what is shown."""
        self.run.cost_usd += cost_usd or 0
        self.run.unknown_cost_calls += unknown_calls

    def status(self, status: str, summary: str = "") -> None:
        """Show that the run paused, goes on or ended."""
        self.run.status = status
        self.run.summary = summary
        if status in ("done", "halted", "error"):
            self.run.finished_at = iso(utc_now())
        self._activity.run_changed(self.run)


def step_json(step: runs_pb2.RunStep) -> str:
    """A step as the text it is stored as."""
    return json_format.MessageToJson(step, preserving_proto_field_name=True, indent=None)
