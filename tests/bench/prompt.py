"""The prompt: how large it begins, and how much of it stays as it was from call to call."""

from __future__ import annotations

import json

from tests.bench.bench import Bench, grpc_sender
from tests.bench.figures import Figure

TURNS = 30


async def measure(bench: Bench) -> list[Figure]:
    """One conversation of thirty messages, each of whose prompts the model compares with the last."""
    bench.ensure_running()
    reports = []
    async with grpc_sender(bench.crew) as sender:
        conversation_id = await sender.open()
        for number in range(TURNS):
            sent = await sender.send(conversation_id, f"[report] {conversation_id}, message {number}")
            reports.append(json.loads(sent.text))
    return [
        Figure("first prompt of the default agent", reports[0]["bytes"] / 1024, "KB", 24.0),
        Figure(
            "prompt kept from call to call, least",
            min(report["share"] for report in reports[1:]) * 100,
            "%",
            99.0,
            at_least=True,
            note=f"of the prompt before, in bytes, over {TURNS} turns",
        ),
    ]
