"""The model of the bench: answers at once with what the newest message asks it to do.

A message names a scenario in brackets: ``[plain]``, ``[calls 10 together]``, ``[calls 10 apart]``,
``[stream 50 100]`` (pieces, milliseconds between them), ``[script print]``, ``[script reads]``,
``[pages]`` and ``[script pages]`` (the same work with and without a script), ``[report]``, or
``[report read]`` and ``[report slowly]``, which read a file first, the latter after a wait. As a
process of its own: ``python -m tests.bench.model``; it prints its base URL.
"""

from __future__ import annotations

import asyncio
import json
import re
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

import uvloop

from tests.fixtures.model_server import ModelServer, RecordedRequest, Script, Turn, shared_prefix, text, turn
from tests.fixtures.model_server.script import Step

FILES = 10
# How long ``[report slowly]`` gives a steer to arrive.
_SLOW_SECONDS = 0.5
# Of `[pages]`.
PAGES = 20
_SCENARIO = re.compile(r"\[(plain|calls|stream|script|pages|report)([^\]]*)\]")
_SCRIPTS = {
    "print": "print(1)",
    "reads": """
rows = tools.batch([{"tool": "workspace_read", "args": {"path": f"bench-{n}.txt"}} for n in range(10)])
print(sum([len(row["output"]) for row in rows]))
""",
    "pages": """
for first in (0, 10):
    names = [f"page-{first + n}.txt" for n in range(10)]
    rows = tools.batch([{"tool": "workspace_read", "args": {"path": name}} for name in names])
    for row in rows:
        print("; ".join([line.split("| ")[-1] for line in row["output"].splitlines() if ": " in line][:3]))
""",
}


def file_name(number: int) -> str:
    """The workspace file that the call of this number reads."""
    return f"bench-{number % FILES}.txt"


def page_name(number: int) -> str:
    """A workspace file of `[pages]`."""
    return f"page-{number}.txt"


class BenchScript(Script):
    """Chooses by the scenario that the newest message of the person names."""

    server: ModelServer

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, RecordedRequest] = {}
        self._least: dict[str, float] = {}

    def choose(self, body: Mapping[str, Any]) -> Turn:
        """The turn for a request of this body, which is the newest one of the server."""
        request = self.server.requests[-1]
        # Only the newest is looked at; a long bench would keep every prompt.
        del self.server.requests[:-1]
        messages = body["messages"]
        asked = max(place for place, message in enumerate(messages) if message["role"] == "user")
        found = _SCENARIO.search(str(messages[asked]["content"]))
        match found.groups() if found else ("plain", ""):
            case ("calls", words):
                count, how = words.split()
                return _calls(int(count), how, len(messages) - 1 - asked)
            case ("stream", words):
                pieces, gap = (int(word) for word in words.split())
                return Turn(steps=_Stamped(pieces, gap / 1000), finish="stop")
            case ("script", words):
                if messages[-1]["role"] == "tool":
                    return text("The script has told me.")
                return turn(
                    {"call": {"name": "tool_script", "arguments": {"script": _SCRIPTS[words.strip()]}}}
                )
            case ("pages", _):
                if messages[-1]["role"] == "tool":
                    return text("I have read them all.")
                return turn(*(_read(page_name(number)) for number in range(PAGES)))
            case ("report", how):
                report = self._report(request, messages)
                if how and messages[-1]["role"] == "user":
                    wait = [{"delay": _SLOW_SECONDS}] if how.strip() == "slowly" else []
                    return turn(*wait, _read(file_name(len(messages))))
                return text(json.dumps(report), pieces=1)
        return text("Good morning. The kettle is on and the paper is on the table.", pieces=3)

    def _report(self, request: RecordedRequest, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Of this conversation so far: the size at hand, and the least part kept from call to call."""
        first = next(str(message["content"]) for message in messages if message["role"] == "user")
        before = self._last.get(first)
        self._last[first] = request
        share = 1.0 if before is None else shared_prefix(before, request)
        self._least[first] = min(share, self._least.get(first, 1.0))
        return {
            "at": time.time(),
            "bytes": len(request.raw),
            "least": self._least[first],
            "results": sum(message["role"] == "tool" for message in messages),
            "messages": len(messages),
        }


def _calls(count: int, how: str, answered: int) -> Turn:
    """Reads: all in one reply, or one a step until as many results are there."""
    if how == "together":
        if answered:
            return text("I have read them all.")
        return turn(*(_read(file_name(number)) for number in range(count)))
    # One reply and one result a step.
    step = answered // 2
    return turn(_read(file_name(step))) if step < count else text("I have read them all.")


def _read(path: str) -> Step:
    return {"call": {"name": "workspace_read", "arguments": {"path": path}}}


class _Stamped(Sequence[Step]):
    """Pieces of text that say their number and when they were sent, made while they are sent."""

    def __init__(self, pieces: int, gap_seconds: float) -> None:
        self._pieces = pieces
        self._gap_seconds = gap_seconds

    def __iter__(self) -> Iterator[Step]:
        for number in range(self._pieces):
            yield {"text": f"{number}@{time.monotonic_ns()} ", "pieces": 1}
            yield {"delay": self._gap_seconds}

    def __len__(self) -> int:
        return 2 * self._pieces

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Step]: ...
    def __getitem__(self, index: int | slice) -> Step | Sequence[Step]:
        return list(self)[index]


async def serve() -> None:
    """Serve until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    script = BenchScript()
    async with ModelServer(script) as server:
        script.server = server
        print(server.base_url, flush=True)
        await stop.wait()


if __name__ == "__main__":
    uvloop.run(serve())
