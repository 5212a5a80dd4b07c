"""How soon the crew is there: from nothing, again, and for the first message after a start."""

from __future__ import annotations

from tests.bench.bench import Bench
from tests.bench.figures import Figure, percentile

WARM_STARTS = 3


async def measure(bench: Bench) -> list[Figure]:
    """Start from an empty home, then again and again, each time with one message."""
    figures = [
        Figure(
            "cold start to healthy",
            bench.start(),
            "s",
            note="empty home; the environment is made before",
        )
    ]
    warm: list[float] = []
    stops: list[float] = []
    first_turns: list[float] = []
    model = await bench.model_alone("[plain]")
    for _ in range(WARM_STARTS):
        stops.append(bench.stop())
        warm.append(bench.start())
        turn = await bench.over_http(await bench.open(), "[plain] Good morning!")
        first_turns.append(turn.last - model.last)
    return [
        *figures,
        Figure("warm start to healthy", percentile(warm, 0.5), "s", 6.0, note=f"median of {WARM_STARTS}"),
        Figure("stop", percentile(stops, 0.5), "s", 5.0),
        Figure(
            "first turn after a start", percentile(first_turns, 0.5), "ms", 150.0, note="through the gateway"
        ),
    ]
