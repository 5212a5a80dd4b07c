"""The way from a model's text to the arguments a tool runs with."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.common.toolhost import exact_json
from services.common.toolhost.contract import ToolSpec
from services.common.wording import Locale, load
from services.orchestrator.calls.arguments.convert import converted
from services.orchestrator.calls.arguments.repair import repaired
from services.orchestrator.calls.arguments.schema import Fault, Schema, compiled
from services.orchestrator.calls.arguments.signature import signature

# The most characters of one call's arguments; the wire to a host takes 8 MiB.
MOST_CHARS = 2_000_000
# Of the received arguments an error repeats so many characters.
_RECEIVED_CHARS = 1000

Prepare = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class Fitted:
    """Arguments that fit the published schema."""

    arguments: Mapping[str, Any]
    # Compact JSON text with the digits as written.
    json: str

    @property
    def sha256(self) -> bytes:
        """What an approval is bound to (PIP-092)."""
        return digest(self.json)


@dataclass(frozen=True, slots=True)
class Faulty:
    """Arguments that do not fit; `text` says how, for the model (PIP-016)."""

    text: str
    # Compact JSON of what came, for the run card.
    json: str = "{}"
    # Names of the parameters at fault; "" stands for arguments that could not be read (PIP-154).
    parameters: Sequence[str] = ("",)


def digest(arguments_json: str) -> bytes:
    """SHA-256 of final arguments as JSON text."""
    return hashlib.sha256(arguments_json.encode()).digest()


async def fit(
    spec: ToolSpec, text: str, locale: Locale, *, prepare: Prepare | None = None
) -> Fitted | Faulty:
    """Read `text`, bend it to the schema of `spec` and check it.

    Args:
        spec: The tool as it was described.
        text: JSON text of an object as the model wrote it.
        locale: Of the error.
        prepare: Converts older shapes; asked only when the arguments do not fit (PIP-014, 122).
    """
    words = load("orchestrator")
    if len(text) > MOST_CHARS:
        return Faulty(words.text(locale, "calls.arguments.too_long", count=len(text), limit=MOST_CHARS))
    try:
        raw = exact_json.loads_object(text)
        schema = compiled(spec.parameters)
    except (ValueError, RecursionError) as error:
        return Faulty(
            words.text(locale, "calls.arguments.unreadable", tool=spec.name, problem=str(error)[:300])
        )
    final, faults = _bend(schema, raw)
    if faults and prepare is not None:
        older, still = _bend(schema, await prepare(raw))
        if not still:
            final, faults = older, still
    final_json = exact_json.dumps(final)
    if faults:
        parameters = tuple(dict.fromkeys(re.split(r"[.\[]", fault.path, maxsplit=1)[0] for fault in faults))
        return Faulty(_explain(spec.name, schema, faults, final_json, locale), final_json, parameters)
    return Fitted(final, final_json)


def _bend(schema: Schema, raw: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[Fault]]:
    final = converted(schema, repaired(schema, raw))
    return final, schema.faults(final)


def _explain(name: str, schema: Schema, faults: list[Fault], received: str, locale: Locale) -> str:
    words = load("orchestrator")
    lines = [words.text(locale, "calls.arguments.invalid", tool=name)]
    for fault in faults:
        problem = words.text(locale, f"calls.arguments.fault.{fault.key}", **fault.values)
        lines.append(f"- {fault.path}: {problem}" if fault.path else f"- {problem}")
    if len(received) > _RECEIVED_CHARS:
        received = f"{received[:_RECEIVED_CHARS]}…"
    lines.append(words.text(locale, "calls.arguments.received", arguments=received))
    lines.append(words.text(locale, "calls.arguments.call_as", signature=signature(name, schema)))
    return "\n".join(lines)
