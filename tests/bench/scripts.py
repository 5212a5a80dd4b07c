"""What a script costs beside its model call: from gate to result, batched reads, many at once."""

from __future__ import annotations

import asyncio
import json
import time

import grpc.aio
from crew.v1 import conversations_pb2, conversations_pb2_grpc, turns_pb2, turns_pb2_grpc

from tests.bench.bench import Bench, grpc_sender
from tests.bench.figures import Figure, percentile
from tests.bench.model import PAGES, page_name

ROUNDS = 60
AT_ONCE = 20
# Three of a page's lines are wanted; the rest is what a page is.
_PAGE = "owner: somebody\ntitle: A page\nstate: open\n" + ("Other words of this page. " * 8 + "\n") * 48


async def measure(bench: Bench) -> list[Figure]:
    """Scripts of one line, of ten reads in a batch, and twenty at once; and what a script spares."""
    bench.ensure_running()
    for number in range(PAGES):
        (bench.crew.workspace / page_name(number)).write_text(_PAGE)
    async with bench.crew.channel() as channel:
        printing = [await _script_ms(channel, "[script print]") for _ in range(ROUNDS)]
        reading = [await _script_ms(channel, "[script reads]") for _ in range(ROUNDS)]
        began = time.perf_counter()
        together = await asyncio.gather(*(_script_ms(channel, "[script reads]") for _ in range(AT_ONCE)))
        took = (time.perf_counter() - began) * 1000
    share = await _share(bench)
    note = f"{ROUNDS} turns, the call's own time on its run step"
    return [
        Figure("script, print(1), p50", percentile(printing, 0.5), "ms", 8.0, note=note),
        Figure("script, print(1), p99", percentile(printing, 0.99), "ms", 30.0, note=note),
        Figure("script, ten batched reads, p50", percentile(reading, 0.5), "ms", 40.0, note=note),
        Figure(
            "twenty scripts at once, slowest", max(together), "ms", note=f"all ended within {took:.0f} ms"
        ),
        Figure(
            "script, share of what direct calls tell the model",
            share * 100,
            "%",
            5.0,
            note=f"{PAGES} pages of 10,000 characters, three fields of each (SCR-364)",
        ),
    ]


async def _script_ms(channel: grpc.aio.Channel, scenario: str) -> float:
    """The time of the script in a turn of its own conversation."""
    opened = await conversations_pb2_grpc.ConversationsStub(channel).Create(
        conversations_pb2.CreateConversationRequest()
    )
    request = turns_pb2.SendMessageRequest(conversation_id=opened.id, text=scenario)
    result = None
    async for event in turns_pb2_grpc.TurnsStub(channel).Send(request):
        if event.WhichOneof("event") == "tool_result":
            result = event.tool_result
    assert result is not None, "no script ran"
    assert result.ok, result.output
    return float(result.ms)


async def _share(bench: Bench) -> float:
    """What a script puts before the model, by what the same reads made directly put there."""
    sizes = [await _prompt_bytes(bench, scenario) for scenario in ("[plain]", "[pages]", "[script pages]")]
    nothing, direct, script = sizes
    return (script - nothing) / (direct - nothing)


async def _prompt_bytes(bench: Bench, scenario: str) -> int:
    """The size of the request that follows a turn of `scenario`."""
    async with grpc_sender(bench.crew) as sender:
        conversation_id = await sender.open()
        await sender.send(conversation_id, scenario)
        told = await sender.send(conversation_id, "[report]")
    return int(json.loads(told.text)["bytes"])
