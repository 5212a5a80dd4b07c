"""The one gate for every message of a person, whatever it came by (TRN-034 to 038).

A message either opens a turn, or joins the queue of the turn that runs, or is refused. Which of the
three is decided while the conversation's row is locked, so two messages never open two turns.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import uuid4

from services.common.errors import Conflict, LimitReached, NotApplicable, NotFound, Stale
from services.common.storable import storable
from services.common.times import day_in
from services.common.wording import Locale, load
from services.orchestrator.agents.agents import Agents
from services.orchestrator.agents.profile import MASTER_ID
from services.orchestrator.calls import closing
from services.orchestrator.store import approvals, conversations, messages, queue, runs, turns
from services.orchestrator.store.messages import NewMessage
from services.orchestrator.store.pool import Connection, Database
from services.orchestrator.store.queue import QUEUE_LIMIT, KnownRequest, QueuedItem
from services.orchestrator.store.records import Author, Conversation
from services.orchestrator.store.turns import Standing
from services.orchestrator.turns import commands
from services.orchestrator.turns.attendance import attended
from services.orchestrator.turns.writes import closing_message

_TITLE_CHARS = 60


@dataclass(frozen=True, slots=True)
class Opened:
    """The message opened a turn; its claim is this process's."""

    claim: turns.Claim
    run: runs.Run
    conversation: Conversation
    title: str = ""


@dataclass(frozen=True, slots=True)
class Joined:
    """The message waits for the running turn."""

    conversation_id: str
    agent_id: str
    item: QueuedItem


@dataclass(frozen=True, slots=True)
class Repeated:
    """The same message was sent before, and this run answers or answered it (TRN-053, GTW-080)."""

    conversation_id: str
    agent_id: str
    run_id: str


Accepted = Opened | Joined | Repeated


class Inbound:
    """Takes messages in.

    Args:
        database: Holds conversations and their queues.
        agents: Who can be spoken to.
        locale: Of the results that close what an earlier turn left open.
        timezone: In which the person's days are counted.
    """

    def __init__(self, *, database: Database, agents: Agents, locale: Locale, timezone: str) -> None:
        self._database = database
        self._agents = agents
        self._locale: Locale = locale
        self._timezone = timezone

    async def send(
        self,
        conversation_id: str,
        text: str,
        *,
        source: str,
        instance: int,
        request_id: str | None = None,
    ) -> Accepted:
        """Take a message for a conversation.

        Raises:
            TooLarge, Invalid: What was written cannot be a message.
            NotFound: No such conversation, or its agent is gone.
            Conflict: The conversation waits for a person's decision (TRN-056).
            LimitReached: `QUEUE_LIMIT` messages wait already.
            Stale: The same request id came with another text before.
        """
        spoken = commands.read(storable(text).text)
        if request_id is not None:
            commands.check_request_id(request_id)
        digest = hashlib.sha256(text.encode("utf-8", "replace")).digest()
        async with self._database.transaction() as connection:
            conversation = await conversations.lock(connection, conversation_id)
            if conversation is None:
                raise NotFound("NO_CONVERSATION", "error.no_conversation", id=conversation_id)
            if request_id is not None and (
                known := await queue.known_request(connection, conversation_id, request_id)
            ):
                return await self._repeated(connection, conversation, known, digest)
            standing = await turns.standing(connection, conversation_id)
            if standing.awaits_decision:
                raise Conflict("AWAITING_APPROVAL", "error.awaiting_approval")
            if standing.running or standing.queued:
                item = await queue.put(
                    connection, conversation_id, kind=spoken.kind, text=spoken.text, source=source
                )
                if item is None:
                    raise LimitReached("QUEUE_FULL", "error.queue_full", limit=QUEUE_LIMIT)
                if request_id is not None:
                    await queue.name_request(connection, conversation_id, request_id, digest, item_id=item.id)
                if standing.running:
                    return Joined(conversation_id, conversation.agent_id, item)
                # Messages were left waiting by a turn that ended badly: this one goes behind them.
                return await self._open_from_queue(connection, conversation, standing, instance)
            opened = await self._open(connection, conversation, standing, spoken.text, source, instance)
            if request_id is not None:
                await queue.name_request(
                    connection, conversation_id, request_id, digest, run_id=opened.run.id
                )
            return opened

    async def drain(self, conversation_id: str, *, instance: int) -> Opened | None:
        """Open a turn for what waits in a conversation, if nothing forbids it (TRN-066, TRN-082)."""
        async with self._database.transaction() as connection:
            conversation = await conversations.lock(connection, conversation_id)
            if conversation is None:
                return None
            standing = await turns.standing(connection, conversation_id)
            if standing.running or standing.awaits_decision or not standing.queued:
                return None
            return await self._open_from_queue(connection, conversation, standing, instance)

    async def go_on(self, conversation_id: str, *, instance: int) -> Opened:
        """Open a turn that goes on with the reply in which the last one broke off (FLD-013).

        It opens with a note of the loop: nobody said anything new.

        Raises:
            NotFound: No such conversation, or its agent is gone.
            Conflict: A turn runs, or the conversation waits for a decision.
            NotApplicable: The last turn did not end in the middle of a reply.
        """
        async with self._database.transaction() as connection:
            conversation = await conversations.lock(connection, conversation_id)
            if conversation is None:
                raise NotFound("NO_CONVERSATION", "error.no_conversation", id=conversation_id)
            standing = await turns.standing(connection, conversation_id)
            if standing.awaits_decision:
                raise Conflict("AWAITING_APPROVAL", "error.awaiting_approval")
            if standing.running:
                raise Conflict("BUSY", "error.busy")
            if not await messages.ends_in_part_of_a_reply(connection, conversation_id):
                raise NotApplicable("NOTHING_TO_CONTINUE", "error.nothing_to_continue")
            note = load("orchestrator").text(self._locale, "prompt.turn.go_on")
            return await self._open(
                connection, conversation, standing, note, "chat", instance, author="system"
            )

    async def conversation_for(
        self, *, agent_id: str | None, channel: str, conversation_id: str | None
    ) -> str:
        """The conversation a message without one belongs to: the agent's of today (TRN-002).

        Raises:
            NotFound: An unknown conversation or agent.
        """
        if conversation_id:
            async with self._database.connection() as connection:
                if await conversations.get(connection, conversation_id) is None:
                    raise NotFound("NO_CONVERSATION", "error.no_conversation", id=conversation_id)
            return conversation_id
        agent = self._agents.get(agent_id or MASTER_ID)
        if agent is None:
            raise NotFound("NO_AGENT", "error.no_agent", id=agent_id or MASTER_ID)
        day = day_in(self._timezone)
        async with self._database.transaction() as connection:
            if found := await conversations.of_day(connection, agent.id, channel, day):
                return found
            created = await conversations.create(
                connection,
                agent_id=agent.id,
                channel=channel,
                title="",
                autonomous=agent.autonomous,
                cost_cap_usd=agent.cost_cap_usd,
            )
            await conversations.set_of_day(connection, agent.id, channel, day, created.id)
            return created.id

    async def _repeated(
        self, connection: Connection, conversation: Conversation, known: KnownRequest, digest: bytes
    ) -> Joined | Repeated:
        if known.text_sha256 != digest:
            raise Stale("REQUEST_ID_REUSED", "error.request_id_reused")
        if known.item_id is not None:
            for item in await queue.waiting(connection, conversation.id):
                if item.id == known.item_id:
                    return Joined(conversation.id, conversation.agent_id, item)
        if known.run_id is None:
            raise Stale("REQUEST_GONE", "error.request_gone")
        return Repeated(conversation.id, conversation.agent_id, known.run_id)

    async def _open_from_queue(
        self, connection: Connection, conversation: Conversation, standing: Standing, instance: int
    ) -> Opened:
        items = await queue.take(connection, conversation.id)
        text = "\n\n".join(item.text for item in items)
        opened = await self._open(connection, conversation, standing, text, items[0].source, instance)
        await queue.requests_answered_by(
            connection, conversation.id, [item.id for item in items], opened.run.id
        )
        return opened

    async def _open(
        self,
        connection: Connection,
        conversation: Conversation,
        standing: Standing,
        text: str,
        source: str,
        instance: int,
        *,
        author: Author = "person",
    ) -> Opened:
        agent = self._agents.get(conversation.agent_id)
        if agent is None:
            raise NotFound("NO_AGENT", "error.no_agent", id=conversation.agent_id)
        closed = await self._close_open_calls(connection, conversation.id) if standing.within_step else []
        run_id = str(uuid4())
        begun = await turns.begin(
            connection,
            run_id=run_id,
            conversation_id=conversation.id,
            agent_id=conversation.agent_id,
            source=source,
            after_seq=standing.last_seq + len(closed),
            seconds_left=None if attended(source, conversation.autonomous) else agent.max_minutes * 60.0,
            instance=instance,
        )
        if begun is None:
            raise Conflict("BUSY", "error.busy")
        await messages.append(
            connection,
            conversation.id,
            [*closed, NewMessage("user", author, text, run_id, opens_turn=author == "person")],
        )
        title = _title(text) if not conversation.title else ""
        if title and not await conversations.title_if_unnamed(connection, conversation.id, title):
            title = ""
        claim, run = begun
        return Opened(claim, run, conversation, title)

    async def _close_open_calls(self, connection: Connection, conversation_id: str) -> Sequence[NewMessage]:
        """Results for calls that an earlier turn left without one (TRN-142 to 144)."""
        calls = await messages.open_calls(connection, conversation_id)
        decided = await approvals.of_calls(connection, conversation_id, [call.id for call in calls])
        outcomes = [closing.close_with_decision(call, decided.get(call.id), self._locale) for call in calls]
        return [closing_message(outcome, None) for outcome in outcomes]


def _title(text: str) -> str:
    """The beginning of the first message, on one line."""
    line = " ".join(text.split())
    if len(line) <= _TITLE_CHARS:
        return line
    head = line[:_TITLE_CHARS]
    return f"{head.rsplit(' ', 1)[0] or head}…"
