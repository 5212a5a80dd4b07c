"""What a tool call adds to a turn: gate, audit, host, result, step and message, all stored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tests.bench.bench import Bench, Timed, grpc_sender
from tests.bench.figures import Figure, percentile

ROUNDS = 25
CALLS = 10


async def measure(bench: Bench) -> list[Figure]:
    """Turns with ten reads of 1 KB against turns with none, in conversations of the same length."""
    bench.ensure_running()
    async with grpc_sender(bench.crew) as sender:
        none = await _median(sender.open, sender.send, "[plain]")
        together = await _median(sender.open, sender.send, f"[calls {CALLS} together]")
        apart = await _median(sender.open, sender.send, f"[calls {CALLS} apart]")
    model = await bench.model_alone("[plain]")
    # Ten replies more, of which the model's own time is taken off; the crew's part of each stays in.
    each_apart = (apart - none - CALLS * model.last) / CALLS
    # One reply more.
    each_together = (together - none - model.last) / CALLS
    note = f"median of {ROUNDS} turns of {CALLS} reads minus a turn of none, by {CALLS}"
    return [
        Figure("tool call, ten in one reply", each_together, "ms", 10.0, note=note),
        Figure("tool call, one a step", each_apart, "ms", note="the step's own model call included"),
    ]


async def _median(
    open_: Callable[[], Awaitable[str]], send: Callable[[str, str], Awaitable[Timed]], text: str
) -> float:
    # A conversation each: ten results a turn would make the later prompts longer.
    turns = [await send(await open_(), text) for _ in range(ROUNDS)]
    return percentile((turn.last for turn in turns), 0.5)
