"""The calls that a call makes: what a script's run card shows of each (TRN-305 to 308)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from services.common.toolhost import exact_json


@dataclass(frozen=True, slots=True)
class NestedCall:
    """One finished call of a script.

    `arguments` and `output` are shortened as those of a run step are (TRN-295 to 300).
    """

    name: str
    arguments: Mapping[str, Any]
    ok: bool
    output: str
    ms: int
    # None: it cost nothing, or, when it is metered, nobody knows.
    cost_usd: float | None = None
    # It paid a model.
    metered: bool = False
    # A writing call that the gate let run.
    gated: bool = False
    # Of a delegation; its own run records it, the script's does not (SCR-132).
    child_spent_usd: float = 0.0

    @property
    def unknown_cost_calls(self) -> int:
        """1 when it paid a price that nobody knows, else 0."""
        return 1 if self.metered and self.cost_usd is None else 0

    def fields(self) -> dict[str, Any]:
        """Exactly the keys that listeners get (TRN-306)."""
        fields: dict[str, Any] = {
            "name": self.name,
            "arguments": dict(self.arguments),
            "ok": self.ok,
            "output": self.output,
            "ms": self.ms,
            "cost_usd": self.cost_usd,
            "metered": self.metered,
        }
        if self.gated:
            fields["gated"] = True
        if self.child_spent_usd > 0:
            fields["child_spent_usd"] = self.child_spent_usd
        return fields

    def json(self) -> str:
        """The same as JSON text."""
        return exact_json.dumps(self.fields())


@dataclass(frozen=True, slots=True)
class ScriptRecord:
    """What a script did, as its result, its run step and its stored message keep it."""

    # In the order of finishing.
    calls: Sequence[NestedCall] = ()
    # Characters that its calls gave it.
    received_chars: int = 0
    printed_chars: int = 0

    @property
    def child_spent_usd(self) -> float:
        """What the children of its delegations spent."""
        return sum(call.child_spent_usd for call in self.calls)

    def calls_json(self) -> str:
        """The calls as a JSON array."""
        return exact_json.dumps([call.fields() for call in self.calls])

    def json(self) -> str:
        """The whole record, as a tool message stores it (TRN-308)."""
        return exact_json.dumps(
            {
                "calls": [call.fields() for call in self.calls],
                "received_chars": self.received_chars,
                "printed_chars": self.printed_chars,
            }
        )


class NestedReport(Protocol):
    """Where a running script says that one of its calls ended, once for each, in that order."""

    async def __call__(self, call: NestedCall) -> None:
        """Show the call and charge what it cost."""
