"""Many people at once: conversations that all stream at the same time."""

from __future__ import annotations

import asyncio
import itertools
import time
from contextlib import aclosing
from dataclasses import dataclass, field

from tests.bench.bench import Bench
from tests.bench.figures import Figure, percentile

CONVERSATIONS = 100
PIECES = 50
GAP_MS = 100


@dataclass
class _Watched:
    """What one stream showed."""

    delays_ms: list[float] = field(default_factory=list)
    pieces: list[int] = field(default_factory=list)
    event_numbers: list[int] = field(default_factory=list)
    ended: bool = False

    @property
    def whole(self) -> bool:
        """Whether every piece came once and in order, and the stream said how it ended."""
        numbers = self.event_numbers
        return (
            self.ended
            and self.pieces == list(range(PIECES))
            and all(before < after for before, after in itertools.pairwise(numbers))
        )


async def measure(bench: Bench) -> list[Figure]:
    """Each piece of text carries its number and the moment the model sent it."""
    bench.ensure_running()
    opened = [await bench.open() for _ in range(CONVERSATIONS)]
    began = time.perf_counter()
    watched = await asyncio.gather(*(_watch(bench, conversation_id) for conversation_id in opened))
    seconds = time.perf_counter() - began
    delays = [delay for each in watched for delay in each.delays_ms]
    rate = CONVERSATIONS * 1000 // GAP_MS
    broken = sum(not each.whole for each in watched)
    return [
        Figure(
            "event delay p99, 100 streams",
            percentile(delays, 0.99),
            "ms",
            500.0,
            note=f"{len(delays):,} pieces at {rate:,} a second, from model server to HTTP client",
        ),
        Figure("event delay p50, 100 streams", percentile(delays, 0.5), "ms"),
        Figure("streams with a lost or reordered event", broken, "of 100", 0.0),
        Figure("all 100 turns", seconds, "s", note=f"{PIECES * GAP_MS / 1000:.0f} s of them are the model's"),
    ]


async def _watch(bench: Bench, conversation_id: str) -> _Watched:
    seen = _Watched()
    path = f"/api/conversations/{conversation_id}/messages"
    body = {"text": f"[stream {PIECES} {GAP_MS}]"}
    async with aclosing(bench.crew.api.stream("POST", path, body)) as events:
        async for event in events:
            now = time.monotonic_ns()
            seen.event_numbers.append(int(event.id.rpartition(":")[2] or 0))
            seen.ended = event.name == "done"
            if event.name != "text_delta":
                continue
            # Pieces that came close together may be handed out as one.
            for piece in event.data["text"].split():
                number, _, sent = piece.partition("@")
                seen.pieces.append(int(number))
                seen.delays_ms.append((now - int(sent)) / 1e6)
    return seen
