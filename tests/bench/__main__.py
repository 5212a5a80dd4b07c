"""Measures the crew as its owner runs it: ``python -m tests.bench [name …] [--json]``.

Starts ``crew up`` in a home of its own beside a model server that answers at once, and prints what
it found beside what is promised. It never fails on a time.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Awaitable, Callable

import uvloop

from tests.bench import dispatch, memory, plain_turn, prompt, replicas, scripts, start, streaming, tool_call
from tests.bench.bench import Bench
from tests.bench.figures import Figure, as_json, surroundings, table
from tests.fixtures.native_crew import native_crew, program

MEASURES: dict[str, Callable[[Bench], Awaitable[list[Figure]]]] = {
    "start": start.measure,
    "memory": memory.measure,
    "plain_turn": plain_turn.measure,
    "tool_call": tool_call.measure,
    "scripts": scripts.measure,
    "prompt": prompt.measure,
    "dispatch": dispatch.measure,
    "streaming": streaming.measure,
    "replicas": replicas.measure,
}


async def _measure(bench: Bench, names: list[str]) -> list[Figure]:
    figures = []
    for name in names:
        print(f"measuring {name} …", file=sys.stderr, flush=True)
        figures += await MEASURES[name](bench)
    return figures


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(MEASURES)}; all by default")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    if unknown := set(options.names) - set(MEASURES):
        parser.error(f"no such measure: {', '.join(sorted(unknown))}")
    # In the order of the table: the first ones want a crew that did nothing yet.
    names = [name for name in MEASURES if not options.names or name in options.names]
    around = surroundings()
    with program("tests.bench.model") as url:
        environ = {"OPENAI_BASE_URL": url, "MY_AGENT_ROUTES": "openai:bench"}
        with native_crew(environ) as crew:
            bench = Bench(crew, url)
            figures = uvloop.run(_measure(bench, names))
            bench.stop()
    around["load_1m_after"] = surroundings()["load_1m"]
    if options.json:
        print(json.dumps({"surroundings": around, "figures": as_json(figures)}, indent=2, ensure_ascii=False))
        return
    print(table(figures))
    print("\n" + ", ".join(f"{name} {value}" for name, value in around.items()))


if __name__ == "__main__":
    main()
