"""A short title for a new conversation, by a model, after its first turn (TRN-016)."""

from __future__ import annotations

import asyncio

import structlog

from services.common.fence import fenced
from services.common.wording import Catalogue, Locale
from services.orchestrator.models.contract import ChatMessage, ModelError, ModelRequest, Reply, Route
from services.orchestrator.models.facade import Models
from services.orchestrator.money.account import Account
from services.orchestrator.money.side_calls import BudgetSpent, SideCalls
from services.orchestrator.store import conversations, messages
from services.orchestrator.store.pool import Connection, Database, DatabaseLost
from services.orchestrator.store.records import Conversation
from services.orchestrator.turns.activity import Activity
from services.orchestrator.turns.stream import TurnStream

# Of what was said, for the model to read.
_READ_CHARS = 2_000
_READ_MESSAGES = 50
_TITLE_CHARS = 60
_ANSWER_TOKENS = 200
_QUOTES = "\"'`*#“”«» \t"

_log = structlog.get_logger(__name__)


class Naming:
    """Names conversations in the background, one at a time; what it fails at is left as it is.

    Args:
        database: Holds conversations.
        models: Know which routes can be asked.
        side_calls: Ask, and write the ledger.
        activity: Told of new titles.
        catalogue: The request to the model.
        locale: Of titles.
        route: The model that names; None leaves conversations named by their first words.
    """

    def __init__(
        self,
        *,
        database: Database,
        models: Models,
        side_calls: SideCalls,
        activity: Activity,
        catalogue: Catalogue,
        locale: Locale,
        route: Route | None,
    ) -> None:
        self._database = database
        self._models = models
        self._side_calls = side_calls
        self._activity = activity
        self._catalogue = catalogue
        self._locale: Locale = locale
        self._route = route
        self._turn = asyncio.Semaphore(1)
        self._tasks: set[asyncio.Task[None]] = set()

    def after(self, stream: TurnStream) -> None:
        """Name the conversation when this turn has ended, if it has no better title by then."""
        if self._route is None or not self._models.usable([self._route]):
            return
        task = asyncio.create_task(self._after(stream, self._route), name="naming")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Drop what has not been named."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _after(self, stream: TurnStream, route: Route) -> None:
        if await stream.over() not in ("done", "halted", "error"):
            # It waits for a person, or goes on elsewhere: whoever ends it names it.
            return
        try:
            async with self._turn:
                await self._name(stream.conversation_id, route)
        except DatabaseLost:
            _log.info("naming_lost_database")
        except Exception:
            _log.exception("naming_failed", conversation=stream.conversation_id)

    async def _name(self, conversation_id: str, route: Route) -> None:
        async with self._database.transaction() as connection:
            # Deleted or renamed meanwhile: no model is paid.
            conversation = await conversations.take_for_naming(connection, conversation_id)
            if conversation is None or conversation.over_budget:
                return
            said = await _said(connection, conversation_id)
        try:
            reply = await self._ask(conversation, said, route)
        except ModelError as error:
            await self._charge(conversation_id, None, len(error.abandoned))
            _log.info("naming_unanswered", conversation=conversation_id, error=error.key)
            return
        except BudgetSpent:
            return
        unknown = (1 if reply.cost_usd is None else 0) + len(reply.abandoned)
        await self._charge(conversation_id, reply.cost_usd, unknown)
        title = _title(reply.text)
        if not title:
            return
        async with self._database.transaction() as connection:
            named = await conversations.name(connection, conversation_id, title)
        if named:
            self._activity.conversation_changed(conversation_id, title=title)

    async def _ask(self, conversation: Conversation, said: str, route: Route) -> Reply:
        words = self._catalogue
        request = ModelRequest(
            routes=[route],
            system=words.text(self._locale, "prompt.title.system", limit=_TITLE_CHARS),
            messages=[ChatMessage("user", fenced(said, words.text(self._locale, "prompt.title.label")))],
            agent_id=conversation.agent_id,
            purpose="title",
            max_output_tokens=_ANSWER_TOKENS,
        )
        return await self._side_calls.ask(
            request, "title", Account(conversation.agent_id, conversation.id), attended=True
        )

    async def _charge(self, conversation_id: str, cost_usd: float | None, unknown_calls: int) -> None:
        """Add it to the conversation, whose place in lists stays; the ledger has it already."""
        async with self._database.transaction() as connection:
            await conversations.charge(
                connection, conversation_id, cost_usd=cost_usd, unknown_calls=unknown_calls
            )


async def _said(connection: Connection, conversation_id: str) -> str:
    """The first words of the person and of the agent."""
    begun = await messages.between(connection, conversation_id, 0, _READ_MESSAGES)
    spoken = [message for message in begun if message.content]
    first = [next((one for one in spoken if one.author == author), None) for author in ("person", "agent")]
    return "\n\n".join(message.content[:_READ_CHARS] for message in first if message)


def _title(text: str) -> str:
    """The first line of an answer, bare of quotes and marks; "" when there is nothing in it."""
    line = next((line for line in text.splitlines() if line.strip(_QUOTES)), "").strip(_QUOTES)
    title = " ".join(line.split())
    return title if len(title) <= _TITLE_CHARS else f"{title[: _TITLE_CHARS - 1].rstrip()}…"
