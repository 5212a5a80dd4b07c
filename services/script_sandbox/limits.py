"""The numbers of a script (script.md, section 18). They are in code; no configuration widens them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Self

from crew.v1 import script_sandbox_pb2 as pb


@dataclass(frozen=True, slots=True)
class Limits:
    """What one script may use.

    Attributes:
        script_chars: Of the script itself.
        calls: Tool calls and questions.
        questions: Asked of a model.
        lookups: Of tool names, searches and descriptions.
        batch_calls: In one batch.
        argument_chars: Of one call's arguments as compact JSON.
        depth: Calls of the script's own functions at once.
        steps: Rounds of loops, items of comprehensions, calls of functions.
        cpu_seconds: Of processor time.
        alone_seconds: Running without asking anything.
        total_seconds: From start to end, waiting included.
        memory_bytes: Held by the script's values.
        value_size: Elements or characters of one value.
        printed_chars: Kept of what it prints.
        store_value_chars: One kept value as JSON.
        store_chars: All kept keys and values.
    """

    script_chars: int = 20_000
    calls: int = 25
    questions: int = 10
    lookups: int = 40
    batch_calls: int = 10
    argument_chars: int = 100_000
    depth: int = 40
    steps: int = 2_000_000
    cpu_seconds: float = 20.0
    alone_seconds: float = 60.0
    total_seconds: float = 300.0
    memory_bytes: int = 256 * 1024 * 1024
    value_size: int = 8_000_000
    printed_chars: int = 60_000
    store_value_chars: int = 65_536
    store_chars: int = 262_144

    def lowered_to(self, asked: pb.ScriptLimits) -> Self:
        """These limits, lowered where a positive smaller number is asked for."""
        numbers = {
            field.name: min(getattr(self, field.name), getattr(asked, field.name))
            for field in dataclasses.fields(self)
            if getattr(asked, field.name) > 0
        }
        return dataclasses.replace(self, **numbers)


# Outside section 18: what the language and a person's patience say about single things.
INTEGER_BITS = 256
QUESTION_CHARS = 20_000
LABELS = (2, 20)
LABEL_CHARS = 100
SUMMARY_CHARS = 4_000
SUMMARY_DEFAULT = 500
LOOKUP_CHARS = 1_000
SEARCH_RESULTS = 10
SEARCH_DEFAULT = 5
STORE_KEY_CHARS = 200
FORMAT_WIDTH = 10_000
