"""The model of the chaos test: does what messages ask for, and is a strict provider.

A message holds orders, one a line: ``order <kind> <token>``. As a process of its own:
``python -m tests.chaos.model --violations FILE``; it prints its base URL. A request that a strict
provider would refuse is refused, and its fault is added to the file.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import uvloop

from tests.fixtures.model_server import ModelServer, Script, Turn, refuse, turn
from tests.fixtures.model_server.script import Step

READ_FILE = "shared.txt"
LINES_FILE = "lines.txt"
_ORDER = re.compile(r"^order (\w+) (\w+)$", re.MULTILINE)


def written_file(token: str) -> str:
    """The workspace file that the order of this token makes."""
    return f"made/{token}.txt"


class ChaosScript(Script):
    """Answers orders with calls, and everything else with words.

    Args:
        violations: Gets a line for each request that breaks the protocol.
        seed: Of the pauses within replies.
    """

    server: ModelServer

    def __init__(self, violations: Path, seed: int) -> None:
        super().__init__()
        self._violations = violations
        self._random = random.Random(seed)

    def choose(self, body: Mapping[str, Any]) -> Turn:
        """The turn for a request of this body."""
        self.server.requests.clear()
        messages = body["messages"]
        if fault := fault_of(messages):
            with self._violations.open("a") as file:
                file.write(f"{fault}\n")
            return refuse(400, fault)
        orders = _ORDER.findall(messages[-1]["content"]) if messages[-1]["role"] == "user" else []
        calls = [call for kind, token in orders if (call := _call(kind, token))]
        words = [{"text": "One moment. "}, *self._pauses(orders), {"text": "There you are."}]
        return turn(*words, *calls)

    def _pauses(self, orders: Sequence[tuple[str, str]]) -> list[Step]:
        slow = any(kind == "slow" for kind, _ in orders)
        steps: list[Step] = []
        for number in range(6 if slow else 1):
            steps += [{"delay": self._random.uniform(0.01, 0.15)}, {"text": f"{number} … "}]
        return steps


def fault_of(messages: Sequence[Mapping[str, Any]]) -> str | None:
    """Why a strict provider would refuse a request of these messages; None when it would not."""
    seen: set[str] = set()
    waiting: list[str] = []
    for place, message in enumerate(messages):
        role = message["role"]
        if role == "tool":
            if not waiting or message["tool_call_id"] != waiting[0]:
                return f"message {place}: a result of {message['tool_call_id']}, due is {waiting[:1]}"
            waiting.pop(0)
            continue
        if waiting:
            return f"message {place}: {role} before the results of {waiting}"
        if role == "assistant":
            waiting = [call["id"] for call in message.get("tool_calls") or ()]
            if len(set(waiting)) != len(waiting) or seen & set(waiting):
                return f"message {place}: a call id is used twice"
            seen.update(waiting)
        elif (role == "system") != (place == 0):
            return f"message {place}: {role} out of place"
    if waiting:
        return f"the end comes before the results of {waiting}"
    if messages[-1]["role"] not in {"user", "tool"}:
        return f"the last message is the {messages[-1]['role']}'s"
    return None


def _call(kind: str, token: str) -> Step | None:
    match kind:
        case "read":
            return _step("workspace_read", {"path": READ_FILE})
        case "write":
            return _step("workspace_write", {"path": written_file(token), "content": f"{token}\n"})
        case "append":
            command = f"sleep 0.1; echo {token} >> {LINES_FILE}; sleep 0.2"
            return _step("shell_run", {"command": command})
    return None


def _step(name: str, arguments: Mapping[str, str]) -> Step:
    return {"call": {"name": name, "arguments": dict(arguments)}}


async def serve(violations: Path, seed: int) -> None:
    """Serve until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    script = ChaosScript(violations, seed)
    async with ModelServer(script) as server:
        script.server = server
        print(server.base_url, flush=True)
        await stop.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--violations", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    uvloop.run(serve(options.violations, options.seed))
