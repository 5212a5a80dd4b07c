"""A collected run as one tree of JSON values: everything, secrets covered, then long results cut."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message as ProtoMessage

from services.common.api import raw_json_empty
from services.common.times import iso, utc_now
from services.common.toolhost import exact_json
from services.common.wording import Locale, load
from services.orchestrator.store.records import Message
from services.orchestrator.turns.trajectory.collecting import Collected
from services.orchestrator.turns.trajectory.covering import Covering
from services.orchestrator.turns.views import message_view

# Of a tool result that is not asked for in full (TRN-312).
RESULT_CHARS = 2_000

Tree = dict[str, Any]


def document(collected: Collected, covering: Covering, locale: Locale, *, full: bool) -> Tree:
    """The export; its first key is the warning (TRN-315).

    Args:
        collected: What belongs to the run.
        covering: Of secrets; done before anything is cut (TRN-314).
        locale: Of the words around it.
        full: Leave long tool results whole.
    """
    tree: Tree = covering.tree(_run(collected))
    if not full:
        _cut(tree, locale)
    warning = load("orchestrator").text(locale, "trajectory.warning")
    return {"warning": warning, "exported_at": iso(utc_now()), "full": full, **tree}


def _run(collected: Collected) -> Tree:
    tree: Tree = {
        "slice": collected.slice,
        "title": collected.title,
        "run": _fields(collected.run),
        "messages": [_message(message) for message in collected.messages],
    }
    tree["children"] = [_run(child) for child in collected.children]
    return tree


def _message(message: Message) -> Tree:
    tree = _fields(message_view(message))
    if message.role != "tool" and message.context is not None:
        # The notes that the message was read with, those the web does not get included (TRN-313).
        tree["context"] = _parsed(message.context, "null")
    return tree


def _fields(message: ProtoMessage) -> Tree:
    """Every field that has something to say, raw JSON as the values it holds."""
    return {
        field.name: _value(field, getattr(message, field.name))
        for field in message.DESCRIPTOR.fields
        if not field.has_presence or message.HasField(field.name)
    }


def _value(field: Any, value: Any) -> Any:
    if field.is_repeated:
        return [_fields(item) if field.message_type else item for item in value]
    if field.message_type:
        return _fields(value)
    empty = raw_json_empty(field)
    return value if empty is None else _parsed(value, empty)


def _parsed(text: str, empty: str) -> Any:
    return exact_json.loads(text or empty)


def _cut(tree: Tree, locale: Locale) -> None:
    """Shorten the tool results of a run and its children in place, saying how long they were."""
    words = load("orchestrator")
    for message in tree["messages"]:
        if message["role"] != "tool":
            continue
        content = message["content"]
        if len(content) > RESULT_CHARS:
            mark = words.text(locale, "trajectory.cut", count=len(content))
            message["content"] = f"{content[:RESULT_CHARS]}\n{mark}"
            message["content_chars"] = len(content)
        details = len(exact_json.dumps(message["details"]))
        if details > RESULT_CHARS:
            message["details"] = {"left_out_chars": details}
    for child in tree["children"]:
        _cut(child, locale)
