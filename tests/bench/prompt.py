"""The prompt: how large it begins, and how much of it stays as it was from call to call."""

from __future__ import annotations

import asyncio
import json

from tests.bench.bench import Bench, grpc_sender
from tests.bench.figures import Figure

TURNS = 30
# Every so many turns one is steered while its model is asked.
STEERED = 5


async def measure(bench: Bench) -> list[Figure]:
    """One conversation of thirty turns, each with a tool, some steered; the model compares its prompts."""
    bench.ensure_running()
    steers = 0
    async with grpc_sender(bench.crew) as sender:
        conversation_id = await sender.open()
        first = json.loads((await sender.send(conversation_id, f"[report] {conversation_id}")).text)
        for number in range(1, TURNS):
            if number % STEERED:
                sent = await sender.send(conversation_id, f"[report read] message {number}")
                continue
            turn = asyncio.create_task(sender.send(conversation_id, f"[report slowly] message {number}"))
            await asyncio.sleep(0.1)
            steers += await sender.steer(conversation_id, f"[report] rather like this, {number}")
            sent = await turn
        last = json.loads(sent.text)
    return [
        Figure("first prompt of the default agent", first["bytes"] / 1024, "KB", 24.0),
        Figure(
            "prompt kept from call to call, least",
            last["least"] * 100,
            "%",
            99.0,
            at_least=True,
            note=f"in bytes; {TURNS} turns, {last['results']} results, {steers} steers",
        ),
    ]
