"""What a second orchestrator adds: turns a second of one process against two on one database.

A process is given so many turns at once as it is permitted here, each with a model that takes 50 ms; the
second process brings as many more. That is the load under which replicas are added: users wait for models,
and no process is short of a processor. With so many turns that one process is, the gain is bounded by the
machine's processors, which all of them, Postgres and this program included, share: that figure is printed
beside it and promised by nobody.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager

from services.common.rpc import DirectedChannel, connect
from tests.bench.bench import Bench, GrpcSender
from tests.bench.figures import Figure, percentile
from tests.fixtures.native_crew import REPOSITORY, NativeCrew

PERMITTED = 2
MANY = 12
SECONDS = 5.0
ROUNDS = 3
# One piece of text, and 50 ms until the reply ends.
_TEXT = "[stream 1 50]"


async def measure(bench: Bench) -> list[Figure]:
    """One and two processes in turns, so that what else the machine does falls on both."""
    bench.ensure_running()
    crew = bench.crew
    listen = f"unix:{crew.layout.run}/orchestrator-2.sock"
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(crew.channel())
        stack.enter_context(_second(crew, listen))
        second = connect(listen, caller="cli", called="orchestrator", secrets_dir=crew.layout.secrets("cli"))
        await stack.enter_async_context(second)
        async with asyncio.timeout(60):
            await second.channel_ready()
        one, two = await _compared(first, second, PERMITTED, 2 * PERMITTED)
        busy_one, busy_two = await _compared(first, second, MANY, MANY)
    note = f"{PERMITTED} turns at once a process, the model takes 50 ms; median of {ROUNDS}"
    return [
        Figure("turns a second, one orchestrator", one, "/s", note=note),
        Figure("turns a second, two orchestrators", two, "/s"),
        Figure("two orchestrators over one", two / one, "×", 1.7, at_least=True),
        Figure(
            f"two over one, {MANY} turns at once in all",
            busy_two / busy_one,
            "×",
            note=f"bound by the processors: {busy_one:.0f} and {busy_two:.0f} a second",
        ),
    ]


async def _compared(
    first: DirectedChannel, second: DirectedChannel, with_one: int, with_two: int
) -> tuple[float, float]:
    """Turns a second of the first process with so many senders, and of both with so many in all."""
    await _rate([first, second], 2 * PERMITTED, SECONDS / 2)
    one, two = [], []
    for _ in range(ROUNDS):
        one.append(await _rate([first], with_one, SECONDS))
        two.append(await _rate([first, second], with_two, SECONDS))
    return percentile(one, 0.5), percentile(two, 0.5)


async def _rate(channels: Sequence[DirectedChannel], senders: int, seconds: float) -> float:
    """Turns that so many senders, spread over the processes, complete in a second."""
    ends_at = time.monotonic() + seconds

    async def send(channel: DirectedChannel) -> int:
        sender, turns = GrpcSender(channel), 0
        conversation_id = await sender.open()
        while time.monotonic() < ends_at:
            await sender.send(conversation_id, _TEXT)
            turns += 1
            if turns % 20 == 0:
                # A long conversation has a long prompt.
                conversation_id = await sender.open()
        return turns

    began = time.monotonic()
    done = await asyncio.gather(*(send(channels[number % len(channels)]) for number in range(senders)))
    return sum(done) / (time.monotonic() - began)


@contextmanager
def _second(crew: NativeCrew, listen: str) -> Iterator[None]:
    """Another orchestrator of the same crew."""
    layout = crew.layout
    environ = crew.environ | {
        "MY_AGENT_SECRETS_DIR": str(layout.secrets("orchestrator")),
        "MY_AGENT_DATABASE_URL": layout.cluster.url("crew_app"),
        "MY_AGENT_TOOLS_ADDRESS": layout.socket("tools"),
        "MY_AGENT_ORCHESTRATOR_LISTEN": listen,
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "services.orchestrator"],
        cwd=REPOSITORY,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)
