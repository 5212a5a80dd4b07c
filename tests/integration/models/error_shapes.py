"""Streams that fail, as servers really fail."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fixtures.model_server import Turn, turn
from tests.integration.models.shapes import Shape, piece, pieces, quiet

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
