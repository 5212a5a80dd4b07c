"""Postgres dies in the middle of a turn, or a claim is left without anybody who works on it."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import grpc
import psycopg
import pytest
from crew.v1 import runs_pb2

from services.cli.postgres.cluster import Cluster
from services.cli.postgres.running import answers
from services.orchestrator.store.migrate import migrate
from tests.fixtures.crew import Crew, http_status_of, names_of, running_crew, until
from tests.fixtures.killable import held
from tests.fixtures.model_server import ModelServer, call, text, turn
from tests.fixtures.native_crew import wait_until
from tests.fixtures.postgres import ScratchDatabase


class Server:
    """A Postgres of one test, which can be killed."""

    def __init__(self, root: Path) -> None:
        self.cluster = Cluster(root / "data", root / "run", root / "secrets")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Run it; returns when it answers."""
        self.cluster.run.mkdir(mode=0o700, exist_ok=True)
        self._process = subprocess.Popen(
            self.cluster.server_command(os.getpid()),
            env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until(lambda: self._again() or answers(self.cluster), "Postgres answers")

    def kill(self) -> None:
        """End it as ``kill -9`` does."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """End it in order."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        self._process.wait(30)

    def _again(self) -> bool:
        """Start anew while the memory of the one that was killed is still held by its children."""
        assert self._process is not None
        if self._process.poll() is not None:
            self.start()
            return True
        return False


@pytest.fixture
def server() -> Iterator[Server]:
    # Not pytest's folder: a path of a socket has 107 bytes.
    with tempfile.TemporaryDirectory(prefix="crew-pg-") as folder:
        server = Server(Path(folder))
        server.cluster.initialise()
        server.start()
        server.cluster.provision()
        migrate(server.cluster.url("crew_owner"))
        yield server
        server.stop()


@pytest.fixture
async def mortal(server: Server, model_server: ModelServer) -> AsyncIterator[Crew]:
    """A crew whose Postgres is the test's own."""
    cluster = server.cluster
    database = ScratchDatabase(
        "crew", cluster.url("crew_app"), cluster.url("crew_owner"), cluster.url("postgres", "crew")
    )
    environ = {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": model_server.base_url}
    async with running_crew(database, environ=environ) as running:
        yield running


async def ended(crew: Crew, conversation_id: str, messages: int) -> list[str]:
    """The contents of the log, when nothing runs and so many messages are in it."""

    async def over() -> bool:
        with suppress(grpc.aio.AioRpcError):
            found = await crew.get(conversation_id)
            return not found.running and len(found.messages) >= messages
        return False

    await until(over)
    return [message.content for message in (await crew.get(conversation_id)).messages]


async def statuses(crew: Crew, conversation_id: str) -> list[str]:
    """Of the runs, the first one first."""
    reply = await crew.runs.List(runs_pb2.RunsRequest(conversation_id=conversation_id))
    return [run.status for run in reversed(reply.runs)]


@pytest.mark.spec("TRN-161")
async def test_a_turn_that_only_waits_for_its_model_outlives_the_database(
    mortal: Crew, server: Server, model_server: ModelServer
) -> None:
    conversation_id = await mortal.open()
    gate = model_server.gate("stream")
    model_server.play(turn({"text": "Still "}, {"gate": "stream"}, {"text": "here."}))
    sending = asyncio.create_task(mortal.send(conversation_id, "Are you there?"))
    await gate.reached()
    server.kill()
    await asyncio.to_thread(server.start)
    gate.release()
    assert names_of(await sending)[-1] == "done"
    assert await ended(mortal, conversation_id, 2) == ["Are you there?", "Still here."]
    assert await statuses(mortal, conversation_id) == ["done"]


@pytest.mark.spec("TRN-161")
async def test_a_call_that_runs_while_the_database_is_away_keeps_its_result(
    mortal: Crew, server: Server, model_server: ModelServer
) -> None:
    conversation_id = await mortal.open(autonomous=True)
    command = "echo once >> lines.txt; while [ ! -e go ]; do sleep 0.05; done; echo done"
    model_server.play(call("shell_run", {"command": command}), text("It went through."))
    sending = asyncio.create_task(mortal.send(conversation_id, "Run it."))

    async def begun() -> bool:
        return (mortal.workspace / "lines.txt").exists()

    await until(begun)
    server.kill()
    await asyncio.to_thread(server.start)
    (mortal.workspace / "go").touch()
    assert names_of(await sending)[-1] == "done"
    log = await ended(mortal, conversation_id, 4)
    assert "done" in log[2]
    assert log[3] == "It went through."
    assert (mortal.workspace / "lines.txt").read_text() == "once\n"


@pytest.mark.spec("TRN-149", "TRN-161")
async def test_a_result_that_could_not_be_stored_is_closed_with_the_note_once(
    mortal: Crew, server: Server, model_server: ModelServer
) -> None:
    conversation_id = await mortal.open(autonomous=True)
    command = {"command": "echo once >> lines.txt"}
    model_server.play(call("shell_run", command), text("I do not know."))
    sending = asyncio.create_task(mortal.send(conversation_id, "Run it."))
    async with held(mortal, "audit.calls", "new.event = 'ended'") as point:
        await point.reached()
        server.kill()
    await asyncio.to_thread(server.start)
    with pytest.raises(grpc.aio.AioRpcError) as lost:
        await sending
    assert http_status_of(lost.value) == (503, "TURN_MOVED")
    log = await ended(mortal, conversation_id, 4)
    assert "The server restarted while this call was running" in log[2]
    assert log[3] == "I do not know."
    assert (mortal.workspace / "lines.txt").read_text() == "once\n"
    assert await statuses(mortal, conversation_id) == ["error", "done"]


async def test_callers_are_told_to_try_again_while_the_database_is_away(
    mortal: Crew, server: Server, model_server: ModelServer
) -> None:
    conversation_id = await mortal.open()
    server.kill()
    told: list[tuple[int, str]] = []

    async def refused() -> bool:
        # Children of the killed server may answer for a moment.
        try:
            await mortal.get(conversation_id)
        except grpc.aio.AioRpcError as error:
            told.append(http_status_of(error))
        return bool(told)

    await until(refused)
    assert told == [(503, "DATABASE_UNAVAILABLE")]
    await asyncio.to_thread(server.start)
    model_server.play(text("Back."))

    async def sent() -> bool:
        try:
            return names_of(await mortal.send(conversation_id, "Again.", request_id="one"))[-1] == "done"
        except grpc.aio.AioRpcError as error:
            told.append(http_status_of(error))
            return False

    await until(sent)
    assert {status for status, _ in told} == {503}
    assert await ended(mortal, conversation_id, 2) == ["Again.", "Back."]


async def test_a_claim_that_nobody_works_on_runs_out_although_its_owner_lives(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    environ = {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": model_server.base_url}
    async with running_crew(database, environ=environ) as crew:
        conversation_id = await crew.open()
        model_server.play(text("One."), text("Two."))
        await crew.send(conversation_id, "first")
        with psycopg.connect(database.superuser_url, autocommit=True) as connection:
            # As if the process had stumbled between the commit and the start of the turn.
            row = connection.execute(
                "select objid::int from pg_locks where locktype = 'advisory' and objsubid = 2 and granted"
            ).fetchone()
            assert row is not None
            with connection.transaction():
                connection.execute(
                    "insert into runs (id, conversation_id, agent_id, source, status, after_seq) "
                    "values (%s, %s, 'default', 'chat', 'running', 2)",
                    (run_id := str(uuid4()), conversation_id),
                )
                connection.execute(
                    "insert into messages (conversation_id, seq, role, author, content, run_id) "
                    "values (%s, 3, 'user', 'person', 'second', %s)",
                    (conversation_id, run_id),
                )
                connection.execute("update conversations set last_seq = 3 where id = %s", (conversation_id,))
                connection.execute(
                    "insert into turns (conversation_id, run_id, instance, epoch, lease_until) "
                    "values (%s, %s, %s, nextval('turn_epochs'), now())",
                    (conversation_id, run_id, row[0]),
                )
        assert await ended(crew, conversation_id, 4) == ["first", "One.", "second", "Two."]
        assert await statuses(crew, conversation_id) == ["done", "error", "done"]


async def test_a_sender_that_leaves_at_any_moment_leaves_no_turn_behind(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    environ = {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": model_server.base_url}
    draw = random.Random(7)
    async with running_crew(database, environ=environ) as crew:
        opened = [await crew.open() for _ in range(40)]
        for conversation_id in opened:
            sending = asyncio.create_task(crew.send(conversation_id, "Hello?"))
            await asyncio.sleep(draw.uniform(0, 0.03))
            sending.cancel()
        for conversation_id in opened:
            found = await crew.get(conversation_id)
            # What was stored before its sender left is answered; what was not is not there.
            await ended(crew, conversation_id, 2 if found.messages else 0)
        assert "running" not in {
            status for conversation_id in opened for status in await statuses(crew, conversation_id)
        }
