"""Without room nothing new begins, what runs ends, and all goes on by itself when there is room."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import grpc
import psycopg
import pytest
from crew.v1 import system_pb2
from psycopg import sql

from services.cli.postgres.cluster import Cluster
from tests.fixtures.crew import Crew, http_status_of, names_of, until
from tests.fixtures.postgres import ScratchDatabase

MB = 1_000_000
WRITE = '/tool workspace_write {"path": "a.txt", "content": "1"}'
HOLD = '/tool shell_run {"command": "touch begun; sleep 120"}'


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """What the disk of the home has free, to be changed."""
    room = {"bytes": 5000 * MB}
    monkeypatch.setattr("services.orchestrator.store.space.free_bytes", lambda _: room["bytes"])
    return room


async def storage(crew: Crew) -> tuple[str, bool, str]:
    health = await crew.system.Health(system_pb2.HealthRequest())
    [found] = [service for service in health.services if service.name == "storage"]
    return health.status, found.reachable, found.note


async def short(crew: Crew) -> bool:
    return not (await storage(crew))[1]


@pytest.mark.spec("FLD-051")
async def test_under_the_limit_turns_and_decisions_are_refused_and_reads_work(
    free: dict[str, int], crew: Crew
) -> None:
    conversation_id = await crew.open()
    await crew.send(conversation_id, WRITE)
    approval_id = await crew.pending(conversation_id)
    assert await storage(crew) == ("ok", True, "")
    free["bytes"] = 200 * MB - 1
    await until(lambda: short(crew))
    assert await storage(crew) == (
        "degraded",
        False,
        "Less than 200 MB are free. No new turn begins until there is room; nothing has to be restarted.",
    )
    for refused in (
        crew.send(await crew.open(), "hello"),
        crew.decide(approval_id, approve=True),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await refused
        assert http_status_of(error.value) == (507, "DISK_FULL")
        assert "200 MB" in str(error.value.details())
    found = await crew.get(conversation_id)
    assert found.pending_approval.id == approval_id
    free["bytes"] = 200 * MB

    async def room() -> bool:
        return not await short(crew)

    await until(room)
    assert names_of(await crew.decide(approval_id, approve=True))[-1] == "done"
    assert (crew.workspace / "a.txt").read_text() == "1"


@pytest.mark.spec("FLD-051")
async def test_a_running_turn_ends_and_what_waited_is_answered_when_there_is_room(
    free: dict[str, int], crew: Crew
) -> None:
    conversation_id = await crew.open(autonomous=True)
    sending = asyncio.create_task(crew.send(conversation_id, HOLD))

    async def begun() -> bool:
        return (crew.workspace / "begun").exists()

    await until(begun)
    assert names_of(await crew.send(conversation_id, "and then?")) == ["queued"]
    free["bytes"] = 0
    events = await sending
    assert "the disk is full" in events[-1].error.message
    run = await crew.last_run(conversation_id)
    assert (run.status, run.summary) == ("error", events[-1].error.message)
    found = await crew.get(conversation_id)
    assert [message.role for message in found.messages] == ["user", "assistant", "tool"]
    assert [waiting.text for waiting in found.queued] == ["and then?"]
    await asyncio.sleep(2.5)
    assert not (await crew.get(conversation_id)).running
    free["bytes"] = 5000 * MB

    async def answered() -> bool:
        return (await crew.get(conversation_id)).messages[-1].content.endswith("and then?")

    await until(answered)


@pytest.fixture
def small_disk(postgres: Cluster, database: ScratchDatabase) -> Iterator[Path]:
    """The folder of a file system of 40 MB on which the tables of the database are."""
    with tempfile.TemporaryDirectory(prefix="crew-disk-") as name:
        disk = Path(name)
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=40m,mode=0777", "tmpfs", name],
            check=False,
            capture_output=True,
        )
        if mounted.returncode:
            pytest.skip("a small file system can be mounted by root only")
        place = disk / "tables"
        place.mkdir()
        space = sql.Identifier(f"small_{database.name}")
        moved = sql.SQL("alter database {} set tablespace {}")
        with psycopg.connect(postgres.url("postgres", "postgres"), autocommit=True) as admin:
            admin.execute(sql.SQL("create tablespace {} location {}").format(space, str(place)))
            admin.execute(moved.format(sql.Identifier(database.name), space))
            try:
                yield disk
            finally:
                admin.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s",
                    (database.name,),
                )
                admin.execute(moved.format(sql.Identifier(database.name), sql.Identifier("pg_default")))
                admin.execute(sql.SQL("drop tablespace {}").format(space))
                subprocess.run(["umount", name], check=True)


def fill(disk: Path) -> Path:
    """Take what is free, to the last byte."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 20, 4096):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
    return filler


@pytest.mark.spec("FLD-051")
async def test_postgres_on_a_full_disk(small_disk: Path, crew: Crew) -> None:
    """A real ENOSPC: the turn ends with a sentence, and goes on by itself when there is room."""
    conversation_id = await crew.open(autonomous=True)
    # A result that fits no page that is there already.
    command = "touch begun; until [ -e go ]; do sleep 0.05; done; head -c 5000 /dev/urandom | base64 -w 0"
    sending = asyncio.create_task(crew.send(conversation_id, f'/tool shell_run {{"command": "{command}"}}'))

    async def begun() -> bool:
        return (crew.workspace / "begun").exists()

    await until(begun)
    filler = fill(small_disk)
    (crew.workspace / "go").touch()
    events = await sending
    assert names_of(events)[-1] == "error"
    assert "the turn goes on by itself" in events[-1].error.message
    status, reachable, note = await storage(crew)
    assert (status, reachable) == ("degraded", False)
    assert "takes no writes" in note
    found = await crew.get(conversation_id)
    assert [message.role for message in found.messages] == ["user", "assistant"]
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await crew.send(conversation_id, os.urandom(20_000).hex())
    assert http_status_of(refused.value) == (507, "WRITES_REFUSED")
    os.truncate(filler, 0)

    async def over() -> bool:
        return (await crew.last_run(conversation_id)).status == "done"

    await until(over)
    tool = (await crew.get(conversation_id)).messages[2]
    assert "may or may not have taken effect" in tool.content
    assert await storage(crew) == ("ok", True, "")
    assert names_of(await crew.send(conversation_id, "hello"))[-1] == "done"


@pytest.mark.spec("FLD-051")
async def test_a_request_that_postgres_has_no_room_for_is_told_so(small_disk: Path, crew: Crew) -> None:
    conversation_id = await crew.open()
    filler = fill(small_disk)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        # Nobody has noticed yet: it is this message that does not fit.
        await crew.send(conversation_id, os.urandom(40_000).hex())
    assert http_status_of(refused.value) == (507, "WRITES_REFUSED")
    assert await short(crew)
    assert not (await crew.get(conversation_id)).messages
    os.truncate(filler, 0)

    async def room() -> bool:
        return not await short(crew)

    await until(room)
    assert names_of(await crew.send(conversation_id, "hello"))[-1] == "done"
