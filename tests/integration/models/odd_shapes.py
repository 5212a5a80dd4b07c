"""Streams that are odd in how they are framed, numbered or ended, as servers really send them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tests.fixtures.model_server import Turn, turn
from tests.integration.models.shapes import ANY_ID, READ, Shape, delta, piece, pieces, quiet

_HI = '{"choices":[{"delta":{"content":"Hi"},"finish_reason":null}]}'
_LONG = "lorem ipsum " * 100_000
_LARGE_ARGUMENTS = json.dumps({"content": "x" * 500_000})
_TWO_CHOICES = [
    {"index": 1, "delta": {"content": "other"}},
    {"index": 0, "delta": {"content": "Hi"}},
]

FRAMING_SHAPES: Sequence[Shape] = [
    Shape("a byte order mark first", quiet({"raw": f"\ufeffdata: {_HI}\n\n"}), text="Hi"),
    Shape("carriage returns alone", quiet({"raw": f"data: {_HI}\r\r"}), text="Hi"),
    Shape("blanks around the data", quiet({"raw": f"data:   {_HI}  \n\n"}), text="Hi"),
    Shape("empty events between", quiet({"raw": "data:\n\n\n\ndata: \n\n"}, {"data": _HI}), text="Hi"),
    Shape(
        "a retry line and unknown fields", quiet({"raw": f"retry: 5\nfoo: bar\ndata: {_HI}\n\n"}), text="Hi"
    ),
    Shape(
        "pings that are events of their own",
        quiet({"raw": 'event: ping\ndata: {"type": "ping"}\n\n'}, {"data": _HI}),
        text="Hi",
    ),
    Shape("a line of a million characters", quiet({"text": _LONG, "pieces": 1}), text=_LONG),
    Shape(
        "arguments of half a million characters in one line",
        quiet(pieces(piece(0, "call_a", "write", _LARGE_ARGUMENTS)), finish="tool_calls"),
        calls=[("call_a", "write", _LARGE_ARGUMENTS)],
        finish="tool_calls",
    ),
    Shape("DONE twice", quiet({"text": "Hi"}, {"data": "[DONE]"}, finish=None), text="Hi", finish=None),
    Shape("text after the finish", quiet({"data": _HI.replace("null", '"stop"')}, {"text": "!"}), text="Hi!"),
    Shape("error null in every chunk", quiet({"data": _HI[:-1] + ',"error":null}'}), text="Hi"),
    Shape(
        "invalid UTF-8 inside a key",
        quiet({"raw": b'data: {"\xff":1,"choices":[]}\n\n'}, {"data": _HI}),
        text="Hi",
    ),
]

ODD_SHAPES: Sequence[Shape] = [
    *FRAMING_SHAPES,
    Shape("two choices in a chunk", quiet({"chunk": {"choices": _TWO_CHOICES}}), text="Hi"),
    Shape(
        "a second choice in chunks of its own",
        quiet(*({"chunk": {"choices": [choice]}} for choice in reversed(_TWO_CHOICES))),
        text="Hi",
    ),
    Shape("choices null", quiet({"chunk": {"choices": None}}, {"data": _HI}), text="Hi"),
    Shape("a delta that is null", quiet({"chunk": {"choices": [{"delta": None}]}}, {"data": _HI}), text="Hi"),
    Shape(
        "the old text field empty",
        quiet({"chunk": {"choices": [{"text": "", "delta": {}}]}}, {"data": _HI}),
        text="Hi",
    ),
    Shape(
        "no calls though it says so",
        quiet({"text": "Hi"}, finish="tool_calls"),
        text="Hi",
        finish="tool_calls",
    ),
    Shape("an empty list of calls", quiet(delta(content="Hi", tool_calls=[])), text="Hi"),
    Shape(
        "content filtered at the end",
        quiet({"text": "Hi"}, finish="content_filter"),
        text="Hi",
        finish="content_filter",
    ),
    Shape(
        "a finish reason that is no text",
        quiet({"chunk": {"choices": [{"delta": {"content": "Hi"}, "finish_reason": 1}]}}),
        text="Hi",
    ),
    Shape(
        "content as parts, images and unknown ones among them",
        quiet(
            delta(content=[{"type": "text", "text": "H"}, {"type": "image_url", "image_url": {}}, "odd"]),
            delta(content=[{"type": "text", "text": "i"}, {"type": "text"}]),
        ),
        text="Hi",
    ),
    Shape(
        "a refusal beside empty content", quiet(delta(content="", refusal="I can not.")), text="I can not."
    ),
    Shape(
        "thoughts that are encrypted alone",
        quiet(delta(reasoning_details=[{"type": "reasoning.encrypted", "data": "AAAA"}]), {"text": "Hi"}),
        text="Hi",
        thinks=True,
    ),
    Shape(
        "a signature behind its thought",
        quiet(
            delta(reasoning_details=[{"type": "reasoning.text", "index": 0, "text": "Hm"}]),
            delta(reasoning_details=[{"type": "reasoning.text", "index": 0, "signature": "c2ln"}]),
            {"text": "Hi"},
        ),
        text="Hi",
        thinks=True,
    ),
    Shape(
        "thoughts after the text",
        quiet({"text": "Hi"}, {"reasoning": "Was that right?"}),
        text="Hi",
        thinks=True,
    ),
    Shape(
        "an id that is a number",
        quiet(pieces(piece(0, 7, "read", READ)), finish="tool_calls"),
        calls=[(ANY_ID, "read", READ)],
        finish="tool_calls",
    ),
    Shape(
        "indices that begin at one and leave gaps",
        quiet(pieces(piece(1, "a", "read", READ)), pieces(piece(5, "b", "read", READ)), finish="tool_calls"),
        calls=[("a", "read", READ), ("b", "read", READ)],
        finish="tool_calls",
    ),
    Shape(
        "an index that is negative",
        quiet(pieces(piece(-1, "a", "read", READ[:5])), pieces(piece(-1, None, None, READ[5:]))),
        calls=[("a", "read", READ)],
    ),
    Shape(
        "a type in a piece of its own and text between",
        quiet(
            {"delta": {"tool_calls": [{"index": 0, "id": "a", "type": "function"}]}},
            delta(content="So: "),
            pieces(piece(0, None, "read", READ)),
        ),
        text="So: ",
        calls=[("a", "read", READ)],
    ),
    Shape(
        "arguments with blanks and line ends around them",
        quiet(pieces(piece(0, "a", "read", f"\n {READ} \n"))),
        calls=[("a", "read", READ)],
    ),
    Shape(
        "answered whole with calls, arguments an object",
        Turn(
            body={
                "choices": [
                    {
                        "message": {
                            "role": "assistant",
                            "content": None,
                            "tool_calls": [{"id": "a", "function": {"name": "read", "arguments": {"n": 1}}}],
                        },
                        "finish_reason": "tool_calls",
                    }
                ]
            }
        ),
        calls=[("a", "read", '{"n":1}')],
        finish="tool_calls",
    ),
    Shape(
        "usage before the first text",
        turn(
            {"chunk": {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 0}}},
            {"text": "Hi"},
            usage={"completion_tokens": 2},
        ),
        text="Hi",
        usage={"prompt_tokens": 9, "completion_tokens": 2},
    ),
]
