"""A conversation that goes on differently from a place in another one (TRN-023 to 033)."""

from __future__ import annotations

from dataclasses import dataclass

from services.common.errors import Invalid, NotApplicable, NotFound
from services.common.wording import Catalogue, Locale
from services.orchestrator.agents.agents import Agents
from services.orchestrator.calls import closing
from services.orchestrator.store import compactions, conversations, messages
from services.orchestrator.store.pool import Connection, Database
from services.orchestrator.store.records import Conversation, Message
from services.orchestrator.turns.writes import closing_message

# Ids of messages are signed 64-bit numbers.
_LARGEST_ID = 2**63 - 1
_TITLE_CHARS = 200
_LOCALES: tuple[Locale, ...] = ("en", "vi")


@dataclass(frozen=True, slots=True)
class Fork:
    """A new conversation, and the words it was cut at, for whoever wants to say them otherwise."""

    conversation: Conversation
    text: str


class Forking:
    """Makes forks.

    Args:
        database: Holds conversations.
        agents: Whose defaults a new conversation takes.
        catalogue: For the suffix of titles.
        locale: Of titles and of results that close calls.
    """

    def __init__(self, *, database: Database, agents: Agents, catalogue: Catalogue, locale: Locale) -> None:
        self._database = database
        self._agents = agents
        self._catalogue = catalogue
        self._locale: Locale = locale

    async def fork(self, conversation_id: str, before_message_id: int) -> Fork:
        """Copy what was said before a message of the person; all of it or nothing (TRN-031).

        The source is only read. What the copies cost stays with the source (TRN-027).

        Raises:
            Invalid: The id of the message is not positive.
            NotFound: No such conversation, no such message in it, or its agent is gone.
            NotApplicable: The message is not a person's, or the conversation is a delegated one.
        """
        if not 0 < before_message_id <= _LARGEST_ID:
            raise Invalid("BAD_MESSAGE_ID", "error.bad_message_id")
        async with self._database.transaction() as connection:
            source = await conversations.get(connection, conversation_id)
            if source is None:
                raise NotFound("NO_CONVERSATION", "error.no_conversation", id=conversation_id)
            cut = await _cut(connection, source, before_message_id)
            agent = self._agents.get(source.agent_id)
            if agent is None:
                raise NotFound("NO_AGENT", "error.no_agent", id=source.agent_id)
            fork = await conversations.create(
                connection,
                agent_id=agent.id,
                channel="web",
                title=self._title(source.title),
                autonomous=agent.autonomous,
                cost_cap_usd=agent.cost_cap_usd,
                forked_from=source.id,
            )
            await messages.copy_before(connection, source.id, fork.id, cut.seq)
            await compactions.copy_before(connection, source.id, fork.id, cut.seq)
            calls = await messages.open_calls(connection, fork.id)
            closed = [closing.close(call, "forked", self._locale) for call in calls]
            await messages.append(connection, fork.id, [closing_message(outcome, None) for outcome in closed])
        return Fork(fork, cut.content)

    def _title(self, title: str) -> str:
        """The source's title with one suffix, not repeated for the fork of a fork (TRN-030)."""
        suffixes = [self._catalogue.text(locale, "turn.fork_suffix") for locale in _LOCALES]
        if title.endswith(tuple(suffixes)):
            return title
        suffix = self._catalogue.text(self._locale, "turn.fork_suffix")
        return f"{title[: _TITLE_CHARS - len(suffix) - 1]} {suffix}".strip()


async def _cut(connection: Connection, source: Conversation, message_id: int) -> Message:
    cut = await messages.find(connection, message_id)
    if cut is None or cut.conversation_id != source.id:
        raise NotFound("NO_MESSAGE", "error.no_message", id=message_id)
    if source.parent_conversation_id is not None:
        raise NotApplicable("DELEGATED", "error.fork_of_delegated")
    if cut.role != "user":
        raise NotApplicable("NOT_A_PERSONS_MESSAGE", "error.fork_at_other_role")
    return cut
