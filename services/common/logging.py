"""Log lines: JSON, one a line, without secrets, and never the same one for ever.

Services log through structlog; what libraries log through the standard library takes the same way
out. A line names its event in a few fixed words, with details as fields; arguments of calls, message
texts and credentials do not belong into any.
"""

from __future__ import annotations

import logging
import re
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, MutableMapping
from typing import Any, TextIO

import orjson
import structlog

from services.common.rpc import trace

Line = MutableMapping[str, Any]

SCRUBBED = "[secret]"
# FLD-052.
MAX_IDENTICAL_PER_MINUTE = 10
_WINDOW_SECONDS = 60.0
_MAX_REMEMBERED = 1_000
_MAX_FIELD_CHARS = 8_000
# Shorter values would blank out ordinary words.
_MIN_SECRET_CHARS = 6
_PATTERNS = (
    (re.compile(r"(?i)(bearer\s+)[A-Za-z0-9._~+/=-]{6,}"), rf"\1{SCRUBBED}"),
    (re.compile(r"\b(crew_|sk-)[A-Za-z0-9_-]{8,}"), SCRUBBED),
    (re.compile(r"(\w+://[^\s:/@]*:)[^\s@]+@"), rf"\1{SCRUBBED}@"),
    (
        re.compile(r"(?i)((?:password|token|secret|api_?key)[\"']?\s*[=:]\s*[\"']?)[^\s\"',;&]+"),
        rf"\1{SCRUBBED}",
    ),
)


def configure(service: str, *, secrets: Iterable[str] = (), stream: TextIO | None = None) -> None:
    """Send every log line of this process to `stream` (standard error) as JSON.

    Args:
        service: Name of the service; a field of each line.
        secrets: Values that must never appear, such as keys and tokens this process holds.
        stream: Where to write.
    """
    scrub = _Scrubbing(secrets)
    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _with_trace,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            lambda _logger, _method, line: {"service": service, **line},
            scrub,
            _to_json,
        ],
    )
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(formatter)
    handler.addFilter(Repetition())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.INFO)
    for noisy in ("httpx", "httpcore", "uvicorn.access", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


class Repetition(logging.Filter):
    """Passes ten identical lines a minute and counts the rest (FLD-052).

    Lines are identical when level, logger and words are, whatever their fields; lines about different
    calls (``call_id``) are different ones, since each call has its line (PIP-110). How many were
    counted is the field ``repeated`` of the next such line that passes.

    Args:
        clock: Seconds that only go forward.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        # Of each line: when its minute began, and how often it came since.
        self._seen: OrderedDict[tuple[str, int, str, str], tuple[float, int]] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is written."""
        told = record.msg if isinstance(record.msg, dict) else {"event": record.msg}
        words, call = str(told.get("event", "")), str(told.get("call_id", ""))
        key = (record.name, record.levelno, words[:200], call[:80])
        now = self._clock()
        began, count = self._seen.pop(key, (now, 0))
        held_back = 0
        if now - began >= _WINDOW_SECONDS:
            held_back = max(0, count - MAX_IDENTICAL_PER_MINUTE)
            began, count = now, 0
        self._seen[key] = (began, count + 1)
        if len(self._seen) > _MAX_REMEMBERED:
            self._seen.popitem(last=False)
        if held_back and isinstance(record.msg, dict):
            record.msg = {**record.msg, "repeated": held_back}
        elif held_back:
            record.msg = f"{record.msg} (repeated {held_back} times)"
        return count < MAX_IDENTICAL_PER_MINUTE


class _Scrubbing:
    """Replaces known secret values and what looks like one, in every field of a line."""

    def __init__(self, secrets: Iterable[str]) -> None:
        known = sorted({value for value in secrets if len(value) >= _MIN_SECRET_CHARS}, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, known))) if known else None

    def __call__(self, _logger: Any, _method: str, line: Line) -> Line:
        return {key: self._clean(value) for key, value in line.items()}

    def _clean(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float):
            return value
        text = value if isinstance(value, str) else str(value)
        if len(text) > _MAX_FIELD_CHARS:
            text = f"{text[:_MAX_FIELD_CHARS]}… ({len(text)} characters)"
        if self._known is not None:
            text = self._known.sub(SCRUBBED, text)
        for pattern, replacement in _PATTERNS:
            text = pattern.sub(replacement, text)
        return text


def _with_trace(_logger: Any, _method: str, line: Line) -> Line:
    here = trace.current()
    if here is not None:
        line.setdefault("trace_id", here.trace_id)
    return line


def _to_json(_logger: Any, _method: str, line: Line) -> str:
    return orjson.dumps(line, default=str).decode()
