"""The export as a page to read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from services.common.toolhost import exact_json
from services.common.wording import Locale, load
from services.orchestrator.turns.trajectory.document import Tree

# An opening or closing line of a code block: at most three spaces, then three marks or more.
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


def markdown(tree: Tree, locale: Locale) -> str:
    """A document of `document` as Markdown."""
    return "\n\n".join([f"> **{tree['warning']}**", *_Page(locale).run(tree, 1)]) + "\n"


class _Page:
    def __init__(self, locale: Locale) -> None:
        self._locale: Locale = locale

    def run(self, tree: Tree, level: int) -> Iterator[str]:
        """One run, and below it what it delegated."""
        record = tree["run"]
        title = one_line(tree["title"] or record["summary"] or record["id"])
        yield f"{'#' * level} {title}"
        yield "\n".join(self._record(record))
        if tree["slice"] == "by_time":
            yield self._text("by_time")
        if not tree["messages"]:
            yield self._text("no_messages")
        for message in tree["messages"]:
            yield from self._message(message, level + 1)
        yield f"{'#' * (level + 1)} {self._text('steps')}"
        yield self._block(exact_json.dumps(record["steps"]), "json")
        for child in tree["children"]:
            yield from self.run(child, level + 1)

    def _record(self, record: Tree) -> Iterator[str]:
        for name in (
            "id",
            "agent_id",
            "source",
            "conversation_id",
            "status",
            "summary",
            "started_at",
            "finished_at",
            "cost_usd",
            "unknown_cost_calls",
        ):
            if name in record:
                yield f"- {name}: {one_line(str(record[name]))}"

    def _message(self, message: Tree, level: int) -> Iterator[str]:
        who = self._text(f"by.{message['author']}")
        if message["role"] == "tool":
            who = f"{who} {one_line(message.get('name', ''))}"
        yield f"{'#' * level} {message['seq']} · {who}"
        if message.get("context") is not None:
            yield self._text("context")
            yield self._block(exact_json.dumps(message["context"]), "json")
        if message["role"] == "tool":
            yield self._block(message["content"])
        elif message["content"]:
            yield closed(message["content"])
        for call in message["tool_calls"]:
            yield self._text("call", name=one_line(call["name"]))
            yield self._block(exact_json.dumps(call["arguments"]), "json")
        if message["calls"]:
            yield self._block(exact_json.dumps(message["calls"]), "json")

    def _text(self, key: str, **values: Any) -> str:
        return load("orchestrator").text(self._locale, f"trajectory.{key}", **values)

    @staticmethod
    def _block(text: str, language: str = "") -> str:
        """A code block that nothing inside it can end."""
        longest = max((len(run) for run in re.findall("`+", text)), default=0)
        fence = "`" * max(3, longest + 1)
        return f"{fence}{language}\n{text}\n{fence}"


def one_line(text: str) -> str:
    """`text` on one line (TRN-316)."""
    return " ".join(text.split())


def closed(text: str) -> str:
    """`text`, with the code block closed that it left open (TRN-316)."""
    fence = ""
    for line in text.splitlines():
        found = _FENCE.fullmatch(line)
        if found is None:
            continue
        marks, rest = found.groups()
        if not fence:
            # A line of backticks with another one behind it is code inside a line.
            if marks[0] == "~" or "`" not in rest:
                fence = marks
        elif marks[0] == fence[0] and len(marks) >= len(fence) and not rest.strip():
            fence = ""
    return f"{text}\n{fence}" if fence else text
