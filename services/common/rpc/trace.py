"""W3C trace context: who asked for this work, across all processes it passes through."""

from __future__ import annotations

import re
import secrets
from contextvars import ContextVar
from dataclasses import dataclass

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")


@dataclass(frozen=True, slots=True)
class Trace:
    """One trace and the span of it that this process is in."""

    trace_id: str
    span_id: str
    flags: str = "01"
    # The span this one is part of; "" for the first of a trace.
    parent_id: str = ""

    @classmethod
    def begin(cls) -> Trace:
        """A trace nobody has begun before."""
        return cls(secrets.token_hex(16), secrets.token_hex(8))

    @classmethod
    def from_header(cls, header: str | None) -> Trace:
        """The trace a caller names in ``traceparent``, in a span of our own; else a new one."""
        match = _TRACEPARENT.fullmatch((header or "").strip().lower())
        if match is None or not match[1].strip("0") or not match[2].strip("0"):
            return cls.begin()
        return cls(match[1], secrets.token_hex(8), match[3], parent_id=match[2])

    def child(self) -> Trace:
        """A span of its own inside this one."""
        return Trace(self.trace_id, secrets.token_hex(8), self.flags, parent_id=self.span_id)

    @property
    def header(self) -> str:
        """The value of ``traceparent`` for what this process calls."""
        return f"00-{self.trace_id}-{self.span_id}-{self.flags}"


_current: ContextVar[Trace | None] = ContextVar("trace", default=None)


def current() -> Trace | None:
    """The trace of the work at hand; None outside of any."""
    return _current.get()


def begun() -> Trace:
    """The trace of the work at hand; outside of any, one that this task begins."""
    here = _current.get()
    if here is None:
        here = Trace.begin()
        _current.set(here)
    return here


def enter(trace: Trace) -> None:
    """Make `trace` the current one of this task and of those it starts from here on."""
    _current.set(trace)
