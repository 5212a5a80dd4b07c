"""What the audit trail keeps of a call (PIP-112, PIP-156): enough to judge it, without its secrets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from services.common.rpc import trace
from services.common.toolhost import exact_json
from services.common.toolhost.contract import Effect
from services.orchestrator.calls.arguments import digest
from services.orchestrator.calls.contract import CallOutcome
from services.orchestrator.calls.masking import SecretMask
from services.orchestrator.store.audit import AuditedCall, CallEnd, NewEntry
from services.orchestrator.store.records import GateVerdict, StoredCall
from services.orchestrator.turns.turn import Turn

# Of an argument list.
_SHORT_CHARS = 400
# A model may write any name.
_NAME_CHARS = 80
_TARGET_CHARS = 300
_MOST_ABOUT = 20
# The parameter that holds a command, by tool: kept whole.
_COMMANDS = {"shell_run": "command"}
# Parameters that say what a call is about, whichever tool has them.
_TARGETS = ("path", "file", "url")
# Verdicts whose reason names who decided.
_BY_A_PERSON: frozenset[GateVerdict] = frozenset({"approved", "denied"})
_UNSTORABLE = str.maketrans({"\0": "\ufffd"})


class Trail:
    """Makes entries.

    Args:
        mask: Of secret values this process knows.
    """

    def __init__(self, mask: SecretMask) -> None:
        self.mask = mask

    def call(
        self, turn: Turn, call: StoredCall, arguments_json: str, effect: Effect | None, *, whole: bool = True
    ) -> AuditedCall:
        """Which call an entry is about.

        Args:
            turn: That makes it.
            call: As the model wrote it.
            arguments_json: As it runs, or would.
            effect: Of its tool.
            whole: Keep the whole command; an entry of the end need not repeat it.
        """
        masked = self._storable(arguments_json)
        arguments = _parsed(arguments_json)
        command = arguments.get(_COMMANDS.get(call.name, "")) if whole else None
        return AuditedCall(
            agent_id=turn.agent.id,
            conversation_id=turn.conversation_id,
            run_id=turn.run_id,
            call_id=call.id,
            tool=call.name[:_NAME_CHARS].translate(_UNSTORABLE),
            arguments_sha256=digest(arguments_json),
            arguments_short=masked if len(masked) <= _SHORT_CHARS else f"{masked[:_SHORT_CHARS]}…",
            effect=effect,
            command=self._storable(command) if isinstance(command, str) else None,
            target=self._target(arguments),
            bytes_in=len(arguments_json.encode(errors="replace")),
            trace_id=trace.begun().trace_id,
        )

    def ended(self, turn: Turn, outcome: CallOutcome) -> tuple[AuditedCall, CallEnd]:
        """Which call ended, and how."""
        ran = outcome.ms is not None
        call = self.call(turn, outcome.call, outcome.arguments_json, outcome.effect, whole=not ran)
        return replace(call, reviewed_by=outcome.reviewed_by), CallEnd(
            ok=outcome.ok,
            ms=outcome.ms,
            outcome=outcome.outcome,
            fault=outcome.fault or "",
            about=[self._storable(name)[:_NAME_CHARS] for name in outcome.about[:_MOST_ABOUT]],
            absent=outcome.absent,
            exit_code=outcome.exit_code,
            bytes_out=outcome.bytes_out,
        )

    def ends(self, turn: Turn, outcomes: Sequence[CallOutcome]) -> list[NewEntry]:
        """The entries of calls that ended, each behind why it was let through where that still waits."""
        entries = []
        for outcome in outcomes:
            if let_through := turn.let_through.get(outcome.call.id):
                entries.append(let_through)
            call, end = self.ended(turn, outcome)
            entries.append(
                NewEntry(
                    "ended" if outcome.ms is not None else "withheld",
                    call,
                    outcome.verdict,
                    outcome.reason[:500],
                    outcome.reason if outcome.verdict in _BY_A_PERSON else None,
                    end,
                )
            )
        return entries

    def _target(self, arguments: dict[str, Any]) -> str:
        for name in _TARGETS:
            value = arguments.get(name)
            if isinstance(value, str) and value:
                return self._storable(value)[:_TARGET_CHARS]
        return ""

    def _storable(self, text: str) -> str:
        return self.mask.text(text).encode(errors="replace").decode().translate(_UNSTORABLE)


def _parsed(arguments_json: str) -> dict[str, Any]:
    try:
        return dict(exact_json.loads_object(arguments_json))
    except (ValueError, RecursionError):
        return {}
