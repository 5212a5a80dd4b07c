"""From a stored message to a running turn: nothing may be left lying until a poll finds it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc.aio
import psycopg
from crew.v1 import runs_pb2, runs_pb2_grpc

from tests.bench.bench import Bench, GrpcSender, grpc_sender
from tests.bench.figures import Figure, percentile

SENDS = 1_000
CONVERSATIONS = 50
WAITING = 100

# When the transaction that stored the message began: what is promised counts from its commit.
_STORED = """
    select extract(epoch from created_at)::float8, run_id::text from messages
    where role = 'user' and content like '[[report]] sent %%' and conversation_id = any(%s)
"""
# From there to the model's clock: what the turn does before it asks, its budgets and its prompt, is in it.
_DIRECT = """
    select extract(epoch from u.created_at)::float8, (a.content::json ->> 'at')::float8
    from messages u
    join messages a on a.conversation_id = u.conversation_id and a.seq = u.seq + 1
    where u.role = 'user' and u.content like '[[report]] sent %%' and u.conversation_id = any(%s)
"""
# From the moment the turn before was over.
_WAITED = """
    select extract(epoch from r.finished_at)::float8, (a.content::json ->> 'at')::float8
    from messages u
    join messages a on a.conversation_id = u.conversation_id and a.seq = u.seq + 1
    join messages b on b.conversation_id = u.conversation_id and b.seq = u.seq - 1
    join runs r on r.id = b.run_id
    where u.role = 'user' and u.content like '[[report]] waited%%' and u.conversation_id = any(%s)
"""


async def measure(bench: Bench) -> list[Figure]:
    """A thousand messages to idle conversations, one after another, then messages that wait for a turn."""
    bench.ensure_running()
    async with grpc_sender(bench.crew) as sender:
        opened = [await sender.open() for _ in range(CONVERSATIONS)]
        async with _watched(bench) as running:
            await _send(sender, opened)
        queued = [await _queue(bench, sender) for _ in range(WAITING)]
    stored = _rows(bench, _STORED, opened)
    begun = [(running[run_id] - at) * 1000 for at, run_id in stored if run_id in running]
    direct = _latencies(bench, _DIRECT, opened)
    waited = _latencies(bench, _WAITED, queued)
    lost = SENDS - len(direct) + WAITING - len(waited)
    note = f"{len(begun):,} sends, one at a time; message stored to running turn, as a watcher sees it"
    return [
        Figure("dispatch p50", percentile(begun, 0.5), "ms", 5.0, note=note),
        Figure("dispatch p99", percentile(begun, 0.99), "ms", 30.0),
        Figure("dispatch, slowest", max(begun), "ms", note="one left to the poll would take up to 1,000"),
        Figure("message stored to request at the model p50", percentile(direct, 0.5), "ms"),
        Figure("message stored to request at the model p99", percentile(direct, 0.99), "ms"),
        Figure("messages without an answer", lost, "", 0.0),
        Figure("dispatch of a waiting message p50", percentile(waited, 0.5), "ms", note="turn over to next"),
        Figure("dispatch of a waiting message, slowest", max(waited), "ms"),
    ]


async def _send(sender: GrpcSender, conversations: Sequence[str]) -> None:
    for number in range(SENDS // CONVERSATIONS):
        for conversation_id in conversations:
            await sender.send(conversation_id, f"[report] sent {number} to {conversation_id}")


async def _queue(bench: Bench, sender: GrpcSender) -> str:
    """Send while a turn runs, wait until both are answered, and return where."""
    conversation_id = await sender.open()
    while not await sender.send_behind(conversation_id, "[stream 10 20]", "[report] waited"):
        # That turn was over already; on a busy machine it happens.
        conversation_id = await sender.open()
    path = f"/api/conversations/{conversation_id}"
    async with asyncio.timeout(30):
        while len((await bench.crew.api.get(path))["messages"]) < 4:
            await asyncio.sleep(0.01)
    return conversation_id


def _latencies(bench: Bench, query: str, conversations: Sequence[str]) -> list[float]:
    return [(asked - stored) * 1000 for stored, asked in _rows(bench, query, conversations)]


def _rows(bench: Bench, query: str, conversations: Sequence[str]) -> list[tuple[Any, ...]]:
    with psycopg.connect(bench.crew.layout.cluster.url("crew_app")) as connection:
        cursor = connection.execute(query.replace("[[", "[").replace("]]", "]"), (list(conversations),))
        return cursor.fetchall()


@asynccontextmanager
async def _watched(bench: Bench) -> AsyncIterator[dict[str, float]]:
    """When each run that begins meanwhile was seen to be running, by id."""
    running: dict[str, float] = {}

    async def watch(frames: Any) -> None:
        while (frame := await frames.read()) is not grpc.aio.EOF:
            if frame.run.run.status == "running":
                running.setdefault(frame.run.run.id, time.time())

    async with bench.crew.channel() as channel:
        stub: Any = runs_pb2_grpc.RunsStub(channel)
        frames = stub.Activity(runs_pb2.ActivityRequest())
        # The snapshot comes first: from then on nothing is missed.
        await frames.read()
        watching = asyncio.create_task(watch(frames))
        try:
            yield running
        finally:
            watching.cancel()
            frames.cancel()
