"""Streams of tool calls, as servers really send them (FLD-005)."""

from __future__ import annotations

from collections.abc import Sequence

from tests.integration.models.shapes import ANY_ID, READ, Shape, delta, piece, pieces, quiet

ONE = [("call_a", "read", READ)]
TWO = [("call_a", "read", '{"path": "a"}'), ("call_b", "list", '{"path": "b"}')]

CALL_SHAPES: Sequence[Shape] = [
    Shape(
        "fragments",
        quiet(
            pieces(piece(0, "call_a", "read", "")),
            *(pieces(piece(0, arguments=READ[at : at + 3])) for at in range(0, len(READ), 3)),
            finish="tool_calls",
        ),
        calls=ONE,
        finish="tool_calls",
    ),
    Shape(
        "index absent, id only first",
        quiet(
            pieces(piece(None, "call_a", "read", '{"path": ')),
            pieces(piece(arguments='"a"}')),
            pieces(piece(None, "call_b", "list", '{"path": ')),
            pieces(piece(arguments='"b"}')),
        ),
        calls=TWO,
    ),
    Shape(
        "index absent, id in every piece, interleaved",
        quiet(
            pieces(piece(None, "call_a", "read", '{"pa')),
            pieces(piece(None, "call_b", "list", '{"pa')),
            pieces(piece(None, "call_a", None, 'th": "a"}')),
            pieces(piece(None, "call_b", None, 'th": "b"}')),
        ),
        calls=TWO,
    ),
    Shape(
        "two calls both at index 0, interleaved",
        quiet(
            pieces(piece(0, "call_a", "read", '{"pa')),
            pieces(piece(0, "call_b", "list", '{"pa')),
            pieces(piece(0, "call_a", None, 'th": "a"}')),
            pieces(piece(0, "call_b", None, 'th": "b"}')),
        ),
        calls=TWO,
    ),
    Shape(
        "two whole calls both at index 0, one chunk each",
        quiet(
            pieces(piece(0, "call_a", "read", '{"path": "a"}')),
            pieces(piece(0, "call_b", "list", '{"path": "b"}')),
        ),
        calls=TWO,
    ),
    Shape(
        "two whole calls at index 0 without ids",
        quiet(
            pieces(piece(0, None, "read", '{"path": "a"}')),
            pieces(piece(0, None, "read", '{"path": "b"}')),
        ),
        calls=[(ANY_ID, "read", '{"path": "a"}'), (ANY_ID, "read", '{"path": "b"}')],
    ),
    Shape(
        "both calls in one chunk, no index, no ids, no arguments",
        quiet(pieces(piece(None, None, "now", None), piece(None, None, "now", None))),
        calls=[(ANY_ID, "now", "{}"), (ANY_ID, "now", "{}")],
    ),
    Shape(
        "interleaved by index",
        quiet(
            pieces(piece(0, "call_a", "read", ""), piece(1, "call_b", "list", "")),
            pieces(piece(1, arguments='{"path": ')),
            pieces(piece(0, arguments='{"path": ')),
            pieces(piece(1, arguments='"b"}'), piece(0, arguments='"a"}')),
        ),
        calls=TWO,
    ),
    Shape(
        "name in a later piece",
        quiet(
            pieces(piece(0, "call_a")),
            pieces(piece(0, None, "read")),
            pieces(piece(0, arguments=READ)),
        ),
        calls=ONE,
    ),
    Shape(
        "id in a later piece",
        quiet(
            pieces(piece(0, "", "read", "")),
            pieces(piece(0, "call_a", arguments=READ)),
        ),
        calls=ONE,
    ),
    Shape(
        "name and id repeated in every piece",
        quiet(
            pieces(piece(0, "call_a", "read", "")),
            pieces(piece(0, "call_a", "read", READ[:9])),
            pieces(piece(0, "call_a", "read", READ[9:])),
            pieces(piece(0, "call_a", "read", "")),
        ),
        calls=ONE,
    ),
    Shape(
        "a new id invented for every piece",
        quiet(
            pieces(piece(0, "call_a", "read", "{")),
            pieces(piece(0, "call_x", None, READ[1:9])),
            pieces(piece(0, "call_y", None, READ[9:])),
        ),
        calls=ONE,
    ),
    Shape("arguments null", quiet(pieces(piece(0, "call_a", "now", None))), calls=[("call_a", "now", "{}")]),
    Shape("arguments empty", quiet(pieces(piece(0, "call_a", "now", ""))), calls=[("call_a", "now", "{}")]),
    Shape("arguments absent", quiet(pieces(piece(0, "call_a", "now"))), calls=[("call_a", "now", "{}")]),
    Shape(
        "arguments an object, digits as written",
        quiet(
            {
                "data": '{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"call_a","function":'
                '{"name":"pay","arguments":{"sum":1.10,"id":12345678901234567890123}}}]}}]}'
            }
        ),
        calls=[("call_a", "pay", '{"sum":1.10,"id":12345678901234567890123}')],
    ),
    Shape(
        "an object followed by fragments",
        quiet(
            pieces(piece(0, "call_a", "read", {})),
            pieces(piece(0, arguments=READ[:5])),
            pieces(piece(0, arguments=READ[5:])),
        ),
        calls=ONE,
    ),
    Shape(
        "an empty object as text followed by fragments",
        quiet(
            pieces(piece(0, "call_a", "read", "{}")),
            pieces(piece(0, arguments=READ[:5])),
            pieces(piece(0, arguments=READ[5:])),
        ),
        calls=ONE,
    ),
    Shape(
        "the whole call again at the end",
        quiet(
            pieces(piece(0, "call_a", "read", READ[:5])),
            pieces(piece(0, arguments=READ[5:])),
            pieces(piece(0, arguments=READ)),
        ),
        calls=ONE,
    ),
    Shape(
        "a whole call in one chunk, finish reason stop",
        quiet(pieces(piece(0, "call_a", "read", READ)), finish="stop"),
        calls=ONE,
    ),
    Shape(
        "the same id for two calls",
        quiet(
            pieces(piece(0, "call_0", "read", '{"path": "a"}')),
            pieces(piece(1, "call_0", "read", '{"path": "b"}')),
        ),
        calls=[("call_0", "read", '{"path": "a"}'), ("call_0", "read", '{"path": "b"}')],
    ),
    Shape(
        "the same id for two calls, no index",
        quiet(
            pieces(piece(None, "call_0", "read", '{"path": "a"}')),
            pieces(piece(None, "call_0", "read", '{"path": "b"}')),
        ),
        calls=[("call_0", "read", '{"path": "a"}'), ("call_0", "read", '{"path": "b"}')],
    ),
    Shape(
        "ids empty",
        quiet(
            pieces(piece(0, "", "read", '{"path": "a"}')),
            pieces(piece(1, "", "list", '{"path": "b"}')),
        ),
        calls=[(ANY_ID, "read", '{"path": "a"}'), (ANY_ID, "list", '{"path": "b"}')],
    ),
    Shape(
        "index as text",
        quiet(
            pieces(piece("0", "call_a", "read", '{"path": ')),
            pieces(piece("1", "call_b", "list", '{"path": ')),
            pieces(piece("0", arguments='"a"}')),
            pieces(piece("1", arguments='"b"}')),
        ),
        calls=TWO,
    ),
    Shape(
        "one call not in a list",
        quiet({"delta": {"tool_calls": piece(0, "call_a", "read", READ)}}),
        calls=ONE,
    ),
    Shape(
        "the old function_call field",
        quiet(
            delta(function_call={"name": "read", "arguments": READ[:4]}),
            delta(function_call={"arguments": READ[4:]}),
            finish="function_call",
        ),
        calls=[(ANY_ID, "read", READ)],
        finish="function_call",
    ),
    Shape(
        "a tool nobody has",
        quiet(pieces(piece(0, "call_a", "functions.fly to/moon", "{}"))),
        calls=[("call_a", "functions.fly to/moon", "{}")],
    ),
    Shape("a call without a name", quiet(pieces(piece(0, "call_a", "", "{}"))), calls=[("call_a", "", "{}")]),
    Shape(
        "text, then a call",
        quiet({"text": "I look."}, pieces(piece(0, "call_a", "read", READ)), finish="tool_calls"),
        text="I look.",
        calls=ONE,
        finish="tool_calls",
    ),
]
