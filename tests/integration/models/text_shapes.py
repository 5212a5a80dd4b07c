"""Streams of text, thoughts and usage, as servers really send them."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fixtures.model_server import Turn, turn
from tests.integration.models.shapes import Shape, delta, quiet

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
