"""The one path of every tool call (pipeline.md)."""

from __future__ import annotations

from collections.abc import Sequence

from services.orchestrator.calls.contract import BatchEnd, CallSink, Scope
from services.orchestrator.store.records import StoredCall


class CallPipeline:
    """Takes the calls of one assistant message through all stages."""

    async def run(self, scope: Scope, calls: Sequence[StoredCall], sink: CallSink) -> BatchEnd:
        """Run `calls`, the still open ones of a message, in the order written.

        Returns `Completed` when all have their results stored, `Paused` when a person must decide.
        Called again after the decision with the calls that are still open and the decision in
        `scope.decisions`.

        Raises:
            asyncio.CancelledError: The turn was stopped; the work at the hosts has ended or was
                reported, and every call has its result stored, unless `scope.leave_open`.
        """
        raise NotImplementedError
