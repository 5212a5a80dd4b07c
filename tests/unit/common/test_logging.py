"""Log lines."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from services.common.logging import Repetition, configure
from services.common.rpc import trace


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    configure("orchestrator", secrets=["correct horse", "tok"], stream=stream)
    yield stream
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()


def read(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_json_with_service_level_time_and_trace(lines: io.StringIO) -> None:
    trace.enter(trace.Trace("a" * 32, "b" * 16))
    structlog.get_logger("x").info("turn begins", run_id="r1")
    [line] = read(lines)
    assert line["event"] == "turn begins"
    assert (line["service"], line["level"], line["run_id"]) == ("orchestrator", "info", "r1")
    assert line["trace_id"] == "a" * 32
    assert str(line["timestamp"]).endswith("Z")


@pytest.mark.spec("GTW-035")
@pytest.mark.parametrize(
    "words",
    [
        "correct horse",
        "Bearer abcdefghijklmnop",
        "crew_0123456789abcdef",
        "sk-or-v1-0123456789",
        "postgresql://crew_app:passw0rd@host/db",
        "password=passw0rd",
        '{"api_key": "passw0rd"}',
    ],
)
def test_no_secret_is_written_whichever_way_it_comes(lines: io.StringIO, words: str) -> None:
    log = structlog.get_logger("x")
    log.info(words)
    log.info("field", value=words)
    log.info("nested", value={"deep": [words]})
    logging.getLogger("library").warning("said %s", words)
    try:
        raise ValueError(words)
    except ValueError:
        log.exception("failed")
    assert len(read(lines)) == 5
    for secret in ("correct horse", "abcdefghijklmnop", "0123456789", "passw0rd"):
        assert secret not in lines.getvalue()


def test_a_value_too_short_to_be_a_secret_blanks_no_words(lines: io.StringIO) -> None:
    structlog.get_logger("x").info("the token counter")
    assert read(lines)[0]["event"] == "the token counter"


def test_a_long_field_is_cut(lines: io.StringIO) -> None:
    structlog.get_logger("x").info("long", value="x" * 100_000)
    assert len(lines.getvalue()) < 10_000
    assert "100000 characters" in lines.getvalue()


@pytest.mark.spec("FLD-052")
def test_the_eleventh_identical_line_of_a_minute_is_counted_instead() -> None:
    now = [0.0]
    repetition = Repetition(clock=lambda: now[0])

    def passes(words: object, **fields: object) -> logging.LogRecord | None:
        record = logging.LogRecord("x", logging.WARNING, "", 0, words, (), None)
        if isinstance(words, str) and fields:
            record.msg = {"event": words, **fields}
        return record if repetition.filter(record) else None

    passed = [passes("lost", attempt=n) for n in range(500)]
    assert [record is not None for record in passed] == [True] * 10 + [False] * 490
    assert passes("something else") is not None
    now[0] = 61.0
    record = passes("lost", attempt=501)
    assert record is not None
    assert record.msg == {"event": "lost", "attempt": 501, "repeated": 490}


def test_the_memory_of_repeated_lines_is_bounded() -> None:
    repetition = Repetition(clock=lambda: 0.0)
    for number in range(5_000):
        repetition.filter(logging.LogRecord("x", logging.INFO, "", 0, f"line {number}", (), None))
    assert len(repetition._seen) <= 1_000
