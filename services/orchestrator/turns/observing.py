"""What is told of every call that ended: a line in the log, and figures (PIP-110, PIP-111)."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from services.common.rpc import trace
from services.orchestrator.calls.contract import CallOutcome
from services.orchestrator.calls.metrics import ToolMetrics
from services.orchestrator.turns.turn import Turn

CallObserver = Callable[[Turn, CallOutcome], None]

_log = structlog.get_logger(__name__)


class CallRecord:
    """Logs and counts calls; nothing here waits or asks the database.

    Args:
        metrics: The figures of this process.
    """

    def __init__(self, metrics: ToolMetrics) -> None:
        self._metrics = metrics

    def __call__(self, turn: Turn, outcome: CallOutcome) -> None:
        """Take one call."""
        self._metrics.observe(turn.agent.id, outcome)
        here = trace.begun()
        # Without arguments or results: what they hold is nobody's business but the owner's.
        _log.info(
            "tool_call",
            agent=turn.agent.id,
            conversation=turn.conversation_id,
            run=turn.run_id,
            call_id=outcome.call.id,
            tool=outcome.call.name[:80],
            host=outcome.host,
            verdict=outcome.verdict,
            ok=outcome.ok,
            outcome=outcome.outcome,
            fault=outcome.fault,
            ms=outcome.ms,
            bytes_in=len(outcome.arguments_json.encode(errors="replace")),
            bytes_out=outcome.bytes_out,
            span_id=here.span_id,
            parent_span_id=here.parent_id,
        )
