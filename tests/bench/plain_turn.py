"""A message and its answer: all of it, and the first thing that is seen of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tests.bench.bench import Bench, Timed, grpc_sender
from tests.bench.figures import Figure, percentile

CONVERSATIONS = 10
TURNS = 20


async def measure(bench: Bench) -> list[Figure]:
    """Turns one after another in a few conversations, over gRPC and through the gateway."""
    bench.ensure_running()
    model = await bench.model_alone("[plain]")
    async with grpc_sender(bench.crew) as sender:
        over_grpc = await _turns(sender.open, sender.send)
    over_http = await _turns(bench.open, bench.over_http)
    figures = []
    for way, taken in (("gRPC", over_grpc), ("HTTP", over_http)):
        whole = [each.last - model.last for each in taken]
        first = [each.first - model.first for each in taken]
        note = f"{len(taken)} turns; the model's own {model.last:.1f} ms taken off"
        figures += [
            Figure(f"plain turn p50, {way}", percentile(whole, 0.5), "ms", 40.0, note=note),
            Figure(f"plain turn p99, {way}", percentile(whole, 0.99), "ms"),
            Figure(f"first streamed event p50, {way}", percentile(first, 0.5), "ms", 25.0),
            Figure(f"first streamed event p99, {way}", percentile(first, 0.99), "ms"),
        ]
    return figures


async def _turns(
    open_: Callable[[], Awaitable[str]], send: Callable[[str, str], Awaitable[Timed]]
) -> list[Timed]:
    taken = []
    for _ in range(CONVERSATIONS):
        conversation_id = await open_()
        taken += [await send(conversation_id, f"[plain] Good morning number {n}!") for n in range(TURNS)]
    # The first ones warm connections and caches up; a start has its own measure.
    return taken[5:]
