"""Streams as servers really send them, and the reply each must end in."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.fixtures.model_server import Turn, turn

READ = '{"path": "notes.md"}'
ANY_ID = "*"


@dataclass(frozen=True)
class Shape:
    """One recorded-style stream."""

    name: str
    turn: Turn
    text: str = ""
    # (id, name, arguments); ANY_ID where the server sent none.
    calls: Sequence[tuple[str, str, str]] = ()
    finish: str | None = "stop"
    thinks: bool = False
    usage: Mapping[str, int] = field(default_factory=dict)
    cost: float | None = None
    # For shapes that fail: "broken", "failed" or "retried" (whole at the second asking).
    fails: str = ""


def delta(**fields: Any) -> dict[str, Any]:
    return {"delta": fields}


def pieces(*calls: Mapping[str, Any]) -> dict[str, Any]:
    return {"delta": {"tool_calls": list(calls)}}


def piece(
    index: Any = None, call_id: Any = None, name: Any = None, arguments: Any = "absent", **extra: Any
) -> dict[str, Any]:
    function: dict[str, Any] = {}
    if name is not None:
        function["name"] = name
    if arguments != "absent":
        function["arguments"] = arguments
    made: dict[str, Any] = {"type": "function", "function": function, **extra}
    if index is not None:
        made["index"] = index
    if call_id is not None:
        made["id"] = call_id
    return made


def quiet(*steps: Mapping[str, Any], **fields: Any) -> Turn:
    """A turn without usage."""
    return turn(*steps, **{"usage": None, **fields})


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

TEXT_SHAPES: Sequence[Shape] = [
    Shape("plain text", quiet({"text": "Hello there.", "pieces": 4}), text="Hello there."),
    Shape(
        "role and nulls first",
        quiet(delta(role="assistant", content=None, tool_calls=None), delta(content="Hi")),
        text="Hi",
    ),
    Shape("empty deltas between", quiet(delta(), delta(content=""), delta(content="Hi"), delta()), text="Hi"),
    Shape(
        "keep-alive comments",
        quiet(
            {"comment": "OPENROUTER PROCESSING"}, delta(content="H"), {"comment": "ping"}, delta(content="i")
        ),
        text="Hi",
    ),
    Shape(
        "line ends of other kinds, no blank after the colon, ids and event names",
        quiet(
            {"raw": 'event: chunk\r\nid: 1\r\ndata:{"choices":[{"delta":{"content":"H"}}]}\r\n\r\n'},
            {"raw": 'data: {"choices":[\ndata: {"delta":{"content":"i"}}]}\n\n'},
        ),
        text="Hi",
    ),
    Shape(
        "line separators inside the text",
        quiet({"raw": 'data: {"choices":[{"delta":{"content":"a\u2028b\u0085c"}}]}\n\n'}),
        text="a\u2028b\u0085c",
    ),
    Shape(
        "invalid UTF-8",
        quiet({"raw": b'data: {"choices":[{"delta":{"content":"a\xffb\xc3"}}]}\n\n'}),
        text="a\ufffdb\ufffd",
    ),
    Shape(
        "a character cut into two chunks",
        quiet(
            {"data": r'{"choices":[{"delta":{"content":"a\ud83d"}}]}'},
            {"data": r'{"choices":[{"delta":{"content":"\ude42b"}}]}'},
        ),
        text="a🙂b",
    ),
    Shape(
        "half a character and NUL",
        quiet({"data": r'{"choices":[{"delta":{"content":"x\u0000y\ud83d"}}]}'}),
        text="x\ufffdy\ufffd",
    ),
    Shape(
        "reasoning_content",
        quiet({"reasoning": "Hm, well."}, {"text": "Yes."}),
        text="Yes.",
        thinks=True,
    ),
    Shape(
        "reasoning",
        quiet({"reasoning": "Hm", "field": "reasoning"}, {"text": "Yes."}),
        text="Yes.",
        thinks=True,
    ),
    Shape(
        "reasoning_details",
        quiet(
            delta(reasoning="Hm", reasoning_details=[{"type": "reasoning.text", "text": "Hm", "index": 0}]),
            delta(reasoning_details=[{"type": "reasoning.text", "signature": "c2ln", "index": 0}]),
            delta(content="Yes."),
        ),
        text="Yes.",
        thinks=True,
    ),
    Shape(
        "content as parts with thoughts",
        quiet(
            delta(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}]),
            delta(content=[{"type": "text", "text": "Yes."}]),
        ),
        text="Yes.",
        thinks=True,
    ),
    Shape("only thoughts", quiet({"reasoning": "Hm"}), text="", thinks=True),
    Shape("nothing at all", quiet(), text=""),
    Shape(
        "a refusal",
        quiet(delta(refusal="I may not."), finish="content_filter"),
        text="I may not.",
        finish="content_filter",
    ),
    Shape("no finish reason but DONE", quiet({"text": "Hi"}, finish=None), text="Hi", finish=None),
    Shape("finish reason but no DONE", quiet({"text": "Hi"}, done=False), text="Hi"),
    Shape(
        "finish reason max_tokens", quiet({"text": "Hi"}, finish="max_tokens"), text="Hi", finish="max_tokens"
    ),
    Shape("finish reason eos", quiet({"text": "Hi"}, finish="eos"), text="Hi", finish="eos"),
    Shape(
        "finish reason in every chunk",
        quiet({"chunk": {"choices": [{"delta": {"content": "H"}, "finish_reason": ""}]}}, delta(content="i")),
        text="Hi",
    ),
    Shape(
        "the last event without its blank line",
        quiet(
            {"raw": 'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n'},
            finish=None,
            done=False,
        ),
        text="Hi",
    ),
    Shape(
        "broken after the finish",
        quiet(
            {"text": "Hi"}, {"chunk": {"choices": [{"delta": {}, "finish_reason": "stop"}]}}, {"drop": True}
        ),
        text="Hi",
    ),
    Shape(
        "first chunk about filters alone",
        quiet({"chunk": {"choices": [], "prompt_filter_results": []}}, delta(content="Hi")),
        text="Hi",
    ),
    Shape(
        "answered whole instead of streamed",
        Turn(
            body={
                "choices": [{"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 5, "completion_tokens": 1},
            }
        ),
        text="Hi",
        usage={"prompt_tokens": 5, "completion_tokens": 1},
    ),
    Shape(
        "called plain text",
        quiet({"text": "Hi"}, headers={"content-type": "text/plain; charset=latin-1"}),
        text="Hi",
    ),
]

_FULL = {
    "prompt_tokens": 1000,
    "completion_tokens": 50,
    "prompt_tokens_details": {"cached_tokens": 900},
    "completion_tokens_details": {"reasoning_tokens": 20},
    "cost": 0.0123,
}
_READ_FULL = {"prompt_tokens": 1000, "completion_tokens": 50, "cached_tokens": 900, "reasoning_tokens": 20}

USAGE_SHAPES: Sequence[Shape] = [
    Shape(
        "usage in an empty last chunk",
        turn({"text": "Hi"}, usage=_FULL),
        text="Hi",
        usage=_READ_FULL,
        cost=0.0123,
    ),
    Shape(
        "usage with the finish",
        turn({"text": "Hi"}, usage=_FULL, usage_apart=False),
        text="Hi",
        usage=_READ_FULL,
        cost=0.0123,
    ),
    Shape("usage absent", quiet({"text": "Hi"}), text="Hi"),
    Shape(
        "usage null in all chunks but the last",
        turn({"chunk": {"choices": [{"delta": {"content": "Hi"}}], "usage": None}}, usage=_FULL),
        text="Hi",
        usage=_READ_FULL,
        cost=0.0123,
    ),
    Shape(
        "usage counted up in every chunk",
        turn(
            {
                "chunk": {
                    "choices": [{"delta": {"content": "H"}}],
                    "usage": {"prompt_tokens": 7, "completion_tokens": 1},
                }
            },
            {
                "chunk": {
                    "choices": [{"delta": {"content": "i"}}],
                    "usage": {"prompt_tokens": 7, "completion_tokens": 2},
                }
            },
            usage=None,
        ),
        text="Hi",
        usage={"prompt_tokens": 7, "completion_tokens": 2},
    ),
    Shape(
        "usage inside the choice",
        quiet(
            {"text": "Hi"},
            {
                "chunk": {
                    "choices": [
                        {
                            "delta": {},
                            "usage": {"prompt_tokens": 3, "completion_tokens": 1, "cached_tokens": 2},
                        }
                    ]
                }
            },
        ),
        text="Hi",
        usage={"prompt_tokens": 3, "completion_tokens": 1, "cached_tokens": 2},
    ),
    Shape(
        "usage of x_groq",
        quiet(
            {"text": "Hi"},
            {"chunk": {"choices": [], "x_groq": {"usage": {"prompt_tokens": 3, "completion_tokens": 1}}}},
        ),
        text="Hi",
        usage={"prompt_tokens": 3, "completion_tokens": 1},
    ),
    Shape(
        "cache hits of another name",
        turn(
            {"text": "Hi"}, usage={"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 8}
        ),
        text="Hi",
        usage={"prompt_tokens": 9, "completion_tokens": 1, "cached_tokens": 8},
    ),
    Shape("price 0", turn({"text": "Hi"}, usage={"cost": 0}), text="Hi", cost=0.0),
    Shape(
        "nonsense counts and price",
        turn({"text": "Hi"}, usage={"prompt_tokens": -5, "completion_tokens": "many", "cost": "NaN"}),
        text="Hi",
    ),
    Shape(
        "usage after DONE is not waited for",
        quiet({"text": "Hi"}, {"data": "[DONE]"}, {"chunk": {"choices": [], "usage": _FULL}}, finish=None),
        text="Hi",
        finish=None,
    ),
]

ERROR_SHAPES: Sequence[Shape] = [
    Shape(
        "an error object before any text, code 502",
        turn({"error": {"code": 502, "message": "upstream down"}}),
        fails="retried",
    ),
    Shape(
        "an error object of kind provider_unavailable",
        turn({"error": {"message": "gone", "metadata": {"error_type": "provider_unavailable"}}}),
        fails="retried",
    ),
    Shape("an error object with code 400", turn({"error": {"code": 400, "message": "bad"}}), fails="failed"),
    Shape("an error object without a code", turn({"error": {"message": "odd"}}), fails="failed"),
    Shape("an error that is a string", turn({"error": "odd"}), fails="failed"),
    Shape(
        "an error object instead of a stream",
        Turn(body={"error": {"code": 503, "message": "busy"}}),
        fails="retried",
    ),
    Shape(
        "an error object beside an error finish",
        quiet(
            {
                "chunk": {
                    "error": {"code": 502, "message": "lost"},
                    "choices": [{"delta": {"content": ""}, "finish_reason": "error"}],
                }
            }
        ),
        fails="retried",
    ),
    Shape(
        "an error object after text",
        turn({"text": "Half"}, {"error": {"code": 502, "message": "lost"}}),
        text="Half",
        fails="broken",
    ),
    Shape("the connection breaks before the first token", turn({"drop": True}), fails="retried"),
    Shape(
        "the connection breaks after thoughts",
        turn({"reasoning": "Hm"}, {"drop": True}),
        thinks=True,
        fails="retried",
    ),
    Shape(
        "the connection breaks inside a call",
        turn(pieces(piece(0, "call_a", "read", '{"pa')), {"drop": True}),
        fails="retried",
    ),
    Shape(
        "the connection breaks after text",
        turn({"text": "Half"}, {"drop": True}),
        text="Half",
        fails="broken",
    ),
    Shape(
        "the connection breaks inside an event",
        turn({"raw": 'data: {"choices":[{"del'}, {"drop": True}),
        fails="retried",
    ),
    Shape(
        "the stream ends inside an event",
        quiet({"raw": 'data: {"choices":[{"del'}, finish=None, done=False),
        fails="retried",
    ),
    Shape(
        "the stream ends without a finish",
        quiet({"text": "Half"}, finish=None, done=False),
        text="Half",
        fails="broken",
    ),
    Shape("an empty stream", quiet(finish=None, done=False), fails="retried"),
    Shape("data that is no JSON", turn({"data": "pardon?"}), fails="failed"),
    Shape("data that is no object", turn({"data": "[1, 2]"}), fails="failed"),
    Shape("choices that are no list", turn({"chunk": {"choices": "x"}}), fails="failed"),
    Shape("a delta that is no object", turn({"chunk": {"choices": [{"delta": "x"}]}}), fails="failed"),
    Shape(
        "calls that are no objects",
        turn({"chunk": {"choices": [{"delta": {"tool_calls": ["x"]}}]}}),
        fails="failed",
    ),
    Shape(
        "content that is a number", turn({"chunk": {"choices": [{"delta": {"content": 5}}]}}), fails="failed"
    ),
    Shape("nested beyond reason", turn({"data": '{"a":' * 5000}), fails="failed"),
    Shape("a web page with status 200", Turn(body="<html>Sign in</html>"), fails="failed"),
    Shape(
        "more calls than any reply has",
        turn(
            {
                "chunk": {
                    "choices": [{"delta": {"tool_calls": [piece(n, f"c{n}", "x", "{}") for n in range(300)]}}]
                }
            }
        ),
        fails="failed",
    ),
]


def names(shapes: Sequence[Shape]) -> list[str]:
    return [shape.name for shape in shapes]


def compact(arguments: str) -> Any:
    return json.loads(arguments)
