"""What the scripted crew remembers: conversations, requests, runs, and who listens."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from .shapes import event, frame, shape


def stamp(moment: datetime | None = None) -> str:
    """An instant as the API writes it."""
    return (moment or datetime.now(UTC)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass
class Turn:
    """A running turn: what it said so far, for whoever watches."""

    run_id: str
    events: list[dict[str, Any]] = field(default_factory=list)
    over: bool = False
    task: asyncio.Task[None] | None = None


@dataclass
class Talk:
    """One conversation with everything in it."""

    head: dict[str, Any]
    messages: list[dict[str, Any]] = field(default_factory=list)
    queued: list[dict[str, Any]] = field(default_factory=list)
    approval: dict[str, Any] | None = None
    turn: Turn | None = None
    # Plays the turn, also while it waits for a person.
    task: asyncio.Task[None] | None = None
    # Set by a decision: (approve, answer).
    decided: asyncio.Future[tuple[bool, str | None]] | None = None
    request_ids: set[str] = field(default_factory=set)


class State:
    """Everything; touched on the server's event loop alone."""

    def __init__(self) -> None:
        self.talks: dict[str, Talk] = {}
        self.runs: dict[str, dict[str, Any]] = {}
        self.decided: list[dict[str, Any]] = []
        self.tokens: list[dict[str, Any]] = []
        self.watchers: list[asyncio.Queue[dict[str, Any] | None]] = []
        self.changed = asyncio.Condition()
        self.released: set[str] = set()
        self.numbers = count(1)
        self.cap = 0.5

    def number(self) -> int:
        """A number nobody has."""
        return next(self.numbers)

    def open_talk(self, title: str = "", age: timedelta = timedelta(), agent: str = "default") -> Talk:
        """A new conversation, `age` old."""
        at = stamp(datetime.now(UTC) - age)
        head = shape(
            "Conversation",
            id=f"conv-{self.number()}",
            agent_id=agent,
            channel="web",
            title=title,
            created_at=at,
            updated_at=at,
            cost_cap_usd=self.cap,
        )
        talk = Talk(head)
        self.talks[head["id"]] = talk
        return talk

    def add_message(self, talk: Talk, role: str, content: str, **values: Any) -> dict[str, Any]:
        """Append to the log."""
        values.setdefault("created_at", stamp())
        authors = {"user": "person", "assistant": "agent", "tool": "tool"}
        values.setdefault("author", authors[role])
        message = shape(
            "Message",
            id=self.number(),
            seq=len(talk.messages) + 1,
            role=role,
            content=content,
            **values,
        )
        talk.messages.append(message)
        talk.head["updated_at"] = message["created_at"]
        return message

    def view(
        self, talk: Talk, messages: Iterable[dict[str, Any]] = (), earlier: bool = False
    ) -> dict[str, Any]:
        """The conversation as GET answers it."""
        head = dict(talk.head)
        cap, spent = head["cost_cap_usd"], head["spent_usd"]
        head.update(
            running=talk.turn is not None,
            queued=list(talk.queued),
            pending_approval=talk.approval,
            over_budget=cap > 0 and spent >= cap,
            messages=list(messages),
            has_earlier=earlier,
        )
        return head

    async def tell_turn(self, talk: Talk, kind: str, **values: Any) -> None:
        """One event of the running turn."""
        if talk.turn is None:
            return
        async with self.changed:
            talk.turn.events.append(event(kind, **values))
            self.changed.notify_all()

    async def end_turn(self, talk: Talk) -> None:
        """The turn is over for its watchers."""
        async with self.changed:
            if talk.turn is not None:
                talk.turn.over = True
                talk.turn = None
            self.changed.notify_all()

    def tell_activity(self, kind: str, **values: Any) -> None:
        """One frame to everybody who watches the crew."""
        told = frame(kind, **values)
        for queue in self.watchers:
            queue.put_nowait(told)

    def tell_run(self, run: dict[str, Any]) -> None:
        """A run changed its state."""
        self.tell_activity("run", run={**run, "steps": [dict(step) for step in run["steps"]]})

    def tell_step(self, run: dict[str, Any], step: dict[str, Any]) -> None:
        """A step began or ended."""
        self.tell_activity("event", run_id=run["id"], conversation_id=run["conversation_id"], step=dict(step))

    async def wait_for(self, name: str) -> None:
        """Until the test releases `name`."""
        async with self.changed:
            await self.changed.wait_for(lambda: name in self.released)
