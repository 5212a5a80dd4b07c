"""From a stored message to a running turn: nothing may be left lying until a poll finds it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import psycopg

from tests.bench.bench import Bench, GrpcSender, grpc_sender
from tests.bench.figures import Figure, percentile

SENDS = 1_000
CONVERSATIONS = 50
WAITING = 100

# From the moment the transaction that stored the message began, to the model's clock: more than what is
# promised, which counts from its commit to the turn's beginning, and nothing in between can hide.
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
        await _send(sender, opened)
        queued = [await _queue(bench, sender) for _ in range(WAITING)]
    direct = _latencies(bench, _DIRECT, opened)
    waited = _latencies(bench, _WAITED, queued)
    note = f"{len(direct):,} of {SENDS:,} sends, one at a time; message stored to request at the model"
    lost = SENDS - len(direct) + WAITING - len(waited)
    return [
        Figure("dispatch p50", percentile(direct, 0.5), "ms", 5.0, note=note),
        Figure("dispatch p99", percentile(direct, 0.99), "ms", 30.0),
        Figure(
            "dispatch, slowest", max(direct), "ms", note="a wake-up left to the poll would take up to 1,000"
        ),
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
    with psycopg.connect(bench.crew.layout.cluster.url("crew_app")) as connection:
        rows = connection.execute(query.replace("[[", "[").replace("]]", "]"), (list(conversations),))
        return [(asked - stored) * 1000 for stored, asked in rows]
