"""`tools.names`, `tools.search` and `tools.describe` of a script (SCR-058 to 067).

They ask this process alone, run nothing and appear nowhere.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from services.common.toolhost.contract import ToolSpec
from services.common.wording import Locale, load
from services.orchestrator.calls.arguments import type_name
from services.orchestrator.calls.arguments.schema import Node, Schema, compiled
from services.orchestrator.calls.toolbox import Toolbox
from services.orchestrator.scripts.description import tool_line
from services.orchestrator.scripts.limits import DESCRIBE_CHARS, SEARCH_LINE_CHARS

_WORD = re.compile(r"[^\W_]+")
_DEPTH = 4
# Of the BM25 ranking: how soon a repeated word stops counting, and how much a long text is held back.
_SATURATION, _LENGTH = 1.2, 0.75
# A word of the name says more about a tool than one of its description.
_NAME_WEIGHT = 3


def search(tools: Toolbox, words: str, limit: int) -> list[dict[str, str]]:
    """The tools that fit `words`, the best first, each with one line of its description."""
    documents = [_words_of(spec) for spec in tools.specs]
    if not documents:
        return []
    average = sum(sum(document.values()) for document in documents) / len(documents) or 1
    scores = dict.fromkeys(range(len(documents)), 0.0)
    for word in set(_split(words)):
        holding = [n for n, document in enumerate(documents) if word in document]
        weight = math.log(1 + (len(documents) - len(holding) + 0.5) / (len(holding) + 0.5))
        for n in holding:
            count, length = documents[n][word], sum(documents[n].values())
            damping = _SATURATION * (1 - _LENGTH + _LENGTH * length / average)
            scores[n] += weight * count * (_SATURATION + 1) / (count + damping)
    best = sorted((n for n, score in scores.items() if score > 0), key=lambda n: -scores[n])[:limit]
    specs = tools.specs
    return [{"name": specs[n].name, "description": _line(specs[n].description)} for n in best]


def describe(spec: ToolSpec, locale: Locale) -> str:
    """How a tool is called, what it does, and each parameter by its path (SCR-061 to 063)."""
    words = load("orchestrator")
    lines = [tool_line(spec), *spec.description.strip().splitlines()]
    for path, node, schema, required in _parameters(spec):
        about = [type_name(schema, node)]
        if required:
            about.append(words.text(locale, "scripts.lookup.required"))
        said = _sentence(node)
        lines.append(f"- {path} ({', '.join(about)}){f': {said}' if said else ''}")
    text = "\n".join(lines)
    if len(text) <= DESCRIBE_CHARS:
        return text
    mark = words.text(locale, "scripts.lookup.cut")
    kept: list[str] = []
    room = DESCRIBE_CHARS - len(mark)
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return "\n".join([*kept, mark])


def _words_of(spec: ToolSpec) -> Counter[str]:
    words = Counter(_split(spec.description))
    for word in _split(spec.name):
        words[word] += _NAME_WEIGHT
    return words


def _split(text: str) -> list[str]:
    return _WORD.findall(text.casefold().replace("_", " "))


def _line(description: str) -> str:
    line = " ".join(description.split())
    return line if len(line) <= SEARCH_LINE_CHARS else f"{line[: SEARCH_LINE_CHARS - 1]}…"


def _parameters(spec: ToolSpec) -> Iterator[tuple[str, Node, Schema, bool]]:
    schema = compiled(spec.parameters)

    def walk(node: Node, prefix: str, depth: int) -> Iterator[tuple[str, Node, Schema, bool]]:
        resolved = schema.resolve(node)
        if isinstance(resolved, bool) or depth == 0:
            return
        properties: Mapping[str, Any] = resolved.get("properties", {})
        required: Sequence[str] = resolved.get("required", ())
        for name, inner in properties.items():
            path = f"{prefix}{name}"
            yield path, schema.resolve(inner), schema, name in required
            yield from walk(inner, f"{path}.", depth - 1)
            listed = schema.resolve(inner)
            if not isinstance(listed, bool) and "items" in listed:
                yield from walk(listed["items"], f"{path}[].", depth - 1)

    yield from walk(schema.root, "", _DEPTH)


def _sentence(node: Node) -> str:
    """The first sentence of a parameter's description."""
    if isinstance(node, bool):
        return ""
    line = " ".join(str(node.get("description", "")).split())
    end = re.search(r"[.!?](\s|$)", line)
    return line[: end.start() + 1] if end else line
