"""Every known shape of stream ends in the same reply, or in the right failure."""

from __future__ import annotations

import dataclasses
import uuid

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.orchestrator.models.contract import (
    AllRoutesFailed,
    BrokenOff,
    CallDelta,
    Completed,
    Thinking,
    Usage,
)
from tests.fixtures.model_server import ModelServer, text
from tests.integration.models.call_shapes import CALL_SHAPES
from tests.integration.models.conftest import Asker, Outcome
from tests.integration.models.error_shapes import ERROR_SHAPES
from tests.integration.models.odd_shapes import ODD_SHAPES
from tests.integration.models.shapes import ANY_ID, Shape, names
from tests.integration.models.text_shapes import TEXT_SHAPES, USAGE_SHAPES

WHOLE = [*CALL_SHAPES, *TEXT_SHAPES, *USAGE_SHAPES, *ODD_SHAPES]
# A megabyte in pieces of a few bytes would be all that the test does.
CUT = [shape for shape in WHOLE if len(repr(shape)) < 100_000]


def assert_whole(outcome: Outcome, shape: Shape) -> None:
    reply = outcome.reply
    assert reply.text == shape.text
    assert outcome.shown == shape.text
    assert reply.finish_reason == shape.finish
    assert [(call.name, call.arguments) for call in reply.calls] == [call[1:] for call in shape.calls]
    for call, (call_id, _, _) in zip(reply.calls, shape.calls, strict=True):
        if call_id == ANY_ID:
            uuid.UUID(call.provider_id)
        else:
            assert call.provider_id == call_id
        assert call.broken is None
    assert len(outcome.of(Thinking)) == int(shape.thinks)
    assert reply.usage == Usage(**shape.usage)
    assert reply.cost_usd == shape.cost
    for position, call in enumerate(reply.calls):
        told = "".join(event.chunk for event in outcome.of(CallDelta) if event.index == position)
        assert (
            not call.name
            or told.strip().startswith(call.arguments)
            or call.arguments in ("{}", told.removeprefix("{}"))
        )


@pytest.mark.spec("FLD-005", "FLD-011", "FLD-014", "TRN-131", "TRN-257")
@pytest.mark.parametrize("shape", WHOLE, ids=names(WHOLE))
async def test_a_stream_ends_in_its_reply(asker: Asker, model_server: ModelServer, shape: Shape) -> None:
    model_server.play(shape.turn)
    assert_whole(await asker.ask(), shape)
    assert len(model_server.requests) == 1


@pytest.mark.spec("TRN-239", "TRN-243", "TRN-244", "TRN-245")
@pytest.mark.parametrize("shape", ERROR_SHAPES, ids=names(ERROR_SHAPES))
async def test_a_stream_ends_in_its_failure(asker: Asker, model_server: ModelServer, shape: Shape) -> None:
    model_server.play(shape.turn, text("Second try."))
    outcome = await asker.ask()
    match shape.fails:
        case "retried":
            assert outcome.reply.text == outcome.shown == "Second try."
            assert asker.time.waits == [2.0]
            assert outcome.given_up == []
            assert len(model_server.requests) == 2
        case "failed":
            assert isinstance(outcome.error, AllRoutesFailed)
            assert len(outcome.given_up) == 1
            assert len(model_server.requests) == 1
        case "broken":
            assert isinstance(outcome.error, BrokenOff)
            assert outcome.error.partial_text == outcome.shown == shape.text
            assert len(model_server.requests) == 1
            assert outcome.given_up == []
    assert len(outcome.of(Thinking)) == int(shape.thinks)


@pytest.mark.spec("CNV-257")
async def test_a_retry_calls_off_the_pieces_of_calls_that_were_told(
    asker: Asker, model_server: ModelServer
) -> None:
    broken = next(shape for shape in ERROR_SHAPES if "inside a call" in shape.name)
    again = next(shape for shape in CALL_SHAPES if shape.name == "fragments")
    model_server.play(broken.turn, again.turn)
    outcome = await asker.ask()
    told = outcome.of(CallDelta)
    assert told[:2] == [CallDelta(0, "read", '{"pa', 1), CallDelta(0, "", "", 1)]
    assert {event.attempt for event in told[2:]} == {2}
    assert "".join(event.chunk for event in told[2:]) == outcome.reply.calls[0].arguments


@pytest.mark.spec("FLD-005")
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
async def test_cutting_the_bytes_elsewhere_changes_nothing(
    asker: Asker, model_server: ModelServer, data: st.DataObject
) -> None:
    shape = data.draw(st.sampled_from(CUT))
    seed = data.draw(st.integers(0, 2**32))
    model_server.play(dataclasses.replace(shape.turn, cut=seed))
    assert_whole(await asker.ask(), shape)


async def test_the_tables_are_as_long_as_promised() -> None:
    assert len(CALL_SHAPES) >= 12
    assert len(WHOLE) + len(ERROR_SHAPES) >= 30
    assert len(set(names([*WHOLE, *ERROR_SHAPES]))) == len(WHOLE) + len(ERROR_SHAPES)


@pytest.mark.spec("TRN-128", "TRN-129", "TRN-130", "PIP-013")
async def test_a_reply_at_its_limit_marks_every_call_and_breaks_the_last(
    asker: Asker, model_server: ModelServer
) -> None:
    model_server.play(
        {
            "steps": [
                {"call": {"name": "write", "arguments": '{"a": 1,,}', "id": "a"}},
                {"call": {"name": "write", "arguments": '{"content": "line\\nand the', "id": "b"}},
            ],
            "finish": "length",
        }
    )
    first, last = (await asker.ask()).reply.calls
    assert first.cut_off
    assert last.cut_off
    assert first.broken is not None
    assert (first.broken.truncated, first.broken.position) == (False, 8)
    assert last.broken is not None
    assert last.broken.truncated
    assert last.broken.position == last.broken.length
    assert last.arguments == first.arguments == "{}"


async def test_events_come_in_order_and_end_with_completed(asker: Asker, model_server: ModelServer) -> None:
    model_server.play({"steps": [{"reasoning": "Hm"}, {"text": "Yes"}, {"call": {"name": "x"}}]})
    kinds = [type(event).__name__ for event in (await asker.ask()).events]
    assert list(dict.fromkeys(kinds)) == [
        "Started",
        "Served",
        "Thinking",
        "TextDelta",
        "CallDelta",
        "Completed",
    ]
    assert kinds.count(Completed.__name__) == 1
