"""The ToolHost contract on the wire and in Python: each message and its dataclass, both ways.

A host and the orchestrator's client of hosts use the same functions, so that nothing is lost
between them. What comes from the wire is checked for shape alone; meaning is the tool's to check.
"""

from services.common.toolhost.wire.calls import (
    ARGUMENTS_BYTES,
    PART_BYTES,
    MalformedMessage,
    arguments_from_wire,
    arguments_to_wire,
    context_from_wire,
    context_to_wire,
    isolation_from_wire,
    mode_from_wire,
    spec_from_wire,
    spec_to_wire,
    verdict_from_wire,
    verdict_to_wire,
)
from services.common.toolhost.wire.results import (
    DETAILS_BYTES,
    RESULT_BYTES,
    ResultAssembler,
    result_message,
    result_to_wire,
)

__all__ = [
    "ARGUMENTS_BYTES",
    "DETAILS_BYTES",
    "PART_BYTES",
    "RESULT_BYTES",
    "MalformedMessage",
    "ResultAssembler",
    "arguments_from_wire",
    "arguments_to_wire",
    "context_from_wire",
    "context_to_wire",
    "isolation_from_wire",
    "mode_from_wire",
    "result_message",
    "result_to_wire",
    "spec_from_wire",
    "spec_to_wire",
    "verdict_from_wire",
    "verdict_to_wire",
]
