"""One crew in this loop to which anything happens in any order, and what must be true afterwards."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import grpc
import psycopg
import pytest
from crew.v1 import turns_pb2

from services.orchestrator import app
from services.orchestrator.store.pool import Database
from tests.chaos.load import Record, Sent
from tests.chaos.model import READ_FILE, ChaosScript
from tests.chaos.promises import Aftermath, broken
from tests.fixtures.crew import Crew, http_status_of, running_crew, until
from tests.fixtures.model_server import ModelServer
from tests.fixtures.postgres import ScratchDatabase

# Conversations of one example: in the first a person is asked about every change.
CONVERSATIONS = 2
_AGAIN_SECONDS = 0.05
_NOWHERE = "host=/nonexistent connect_timeout=1"

Kind = Literal["plain", "slow", "read", "write", "append"]


@dataclass(frozen=True)
class Say:
    """A message; `steer` joins the turn that runs."""

    place: int
    kind: Kind
    steer: bool = False


@dataclass(frozen=True)
class Decide:
    """A person settles what waits, if anything does."""

    place: int
    approve: bool


@dataclass(frozen=True)
class Stop:
    """A person stops what runs and takes back what waits."""

    place: int


@dataclass(frozen=True)
class Kill:
    """The orchestrator is gone between two statements, and another one starts."""


@dataclass(frozen=True)
class LoseHost:
    """The tools service goes and comes back."""


@dataclass(frozen=True)
class Pass:
    """Nothing happens for so many hundredths of a second."""

    hundredths: int


Action = Say | Decide | Stop | Kill | LoseHost | Pass


class MortalDatabase(Database):
    """The pool of an orchestrator that can be cut off from Postgres for good."""

    def abandon(self, superuser_url: str) -> None:
        """End every connection, wherever it stands, and let no other be made.

        For Postgres and for other orchestrators the process has died: nothing it had not committed
        counts, its lock is free, and it writes nothing any more.
        """
        self.url = self._pool.conninfo = _NOWHERE
        with psycopg.connect(superuser_url, autocommit=True) as connection:
            connection.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity "
                "where datname = current_database() and usename = 'crew_app'"
            )


@dataclass
class Interleaving:
    """Runs examples against one crew, each in conversations of its own."""

    crew: Crew
    violations: Path
    databases: list[MortalDatabase]
    _names: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    async def run(self, actions: Sequence[Action]) -> list[str]:
        """Do it all, let everything end, and return the promises that were broken."""
        self.violations.write_text("")
        opened = [await self.crew.open(autonomous=place > 0) for place in range(CONVERSATIONS)]
        record, sending = Record(), []
        for action in actions:
            match action:
                case Say(place, kind, steer):
                    message = Sent(f"p{next(self._names)}n1", kind, opened[place])
                    record.sent[message.token] = message
                    sending.append(asyncio.create_task(self._send(message, steer=steer)))
                    # So that it arrives in this place, or is on its way.
                    await asyncio.wait({sending[-1]}, timeout=0.02)
                case Decide(place, approve):
                    await self._decide(opened[place], record, approve=approve)
                case Stop(place):
                    await self._stop(opened[place], record)
                case Kill():
                    self.databases[-1].abandon(self.crew.database.superuser_url)
                    await self.crew.end("orchestrator")
                    await self.crew.start("orchestrator")
                case LoseHost():
                    await self.crew.end("tools")
                    await self.crew.start("tools")
                case Pass(hundredths):
                    await asyncio.sleep(hundredths / 100)
        await self._settle(opened, record, sending)
        return broken(self._aftermath(opened), record, self.violations.read_text())

    async def _send(self, message: Sent, *, steer: bool) -> None:
        """Send under one name until it is accepted; what the turn does then is not waited for."""
        text = f"{'/steer ' if steer else ''}Please.\norder {message.kind} {message.token}"
        while not message.accepted:
            message.attempts += 1
            stream = self.crew.sending(message.conversation_id, text, request_id=message.token)
            with suppress(grpc.aio.AioRpcError):
                async for _ in stream:
                    message.accepted = True
                    break
            stream.cancel()
            if not message.accepted:
                await asyncio.sleep(_AGAIN_SECONDS)

    async def _stop(self, conversation_id: str, record: Record) -> None:
        try:
            reply = await self.crew.turns.Stop(turns_pb2.StopTurnRequest(conversation_id=conversation_id))
        except grpc.aio.AioRpcError:
            for message in record.sent.values():
                if message.conversation_id == conversation_id and message.cleared == "no":
                    message.cleared = "maybe"
            return
        for text in reply.cleared:
            record.sent[text.split()[-1]].cleared = "yes"

    async def _decide(self, conversation_id: str, record: Record, *, approve: bool) -> None:
        try:
            found = await self.crew.get(conversation_id)
            if not found.HasField("pending_approval"):
                return
            approval_id = found.pending_approval.id
            request = turns_pb2.DecideApprovalRequest(approval_id=approval_id, approve=approve)
            stream = self.crew.turns.Decide(request)
            async for _ in stream:
                record.decided[approval_id] = approve
                break
            stream.cancel()
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNAVAILABLE and http_status_of(error)[0] != 409:
                record.unexpected.append(f"decide: {error.details()}")

    async def _settle(
        self, opened: Sequence[str], record: Record, sending: Sequence[asyncio.Task[None]]
    ) -> None:
        async def quiet() -> bool:
            for conversation_id in opened:
                await self._decide(conversation_id, record, approve=True)
            with suppress(grpc.aio.AioRpcError):
                found = [await self.crew.get(each) for each in opened]
                busy = any(each.running or each.queued or each.HasField("pending_approval") for each in found)
                return not busy and all(task.done() for task in sending)
            return False

        try:
            await until(quiet)
        except TimeoutError:
            record.unexpected.append("the turns do not come to an end")
            for task in sending:
                task.cancel()

    def _aftermath(self, opened: Sequence[str]) -> Aftermath:
        after = Aftermath.read(self.crew.database.superuser_url, self.crew.workspace)
        after.messages = {key: log for key, log in after.messages.items() if key in opened}
        for rows in (after.runs, after.approvals, after.audit):
            rows[:] = [row for row in rows if str(row["conversation_id"]) in opened]
        return after


@asynccontextmanager
async def interleaving(database: ScratchDatabase, folder: Path) -> AsyncIterator[Interleaving]:
    """A crew whose model does what messages order and takes note of every prompt it would refuse."""
    violations = folder / "violations"
    violations.touch()
    script = ChaosScript(violations, seed=0)
    databases: list[MortalDatabase] = []

    def opened(url: str, **options: Any) -> MortalDatabase:
        databases.append(MortalDatabase(url, **options))
        return databases[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "Database", opened)
        async with ModelServer(script) as server:
            script.server = server
            environ = {"MY_AGENT_ROUTES": "openai:chaos", "OPENAI_BASE_URL": server.base_url}
            async with running_crew(database, environ=environ) as crew:
                (crew.workspace / READ_FILE).write_text("Something to read.\n")
                yield Interleaving(crew, violations, databases)
