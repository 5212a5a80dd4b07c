"""What a model wrote for a tool's parameters, until it is what the tool runs with.

`fit` does the whole way (PIP-010 to 016): read, convert older shapes, repair, convert primitives,
check against the schema. It never changes a call that is valid as written.
"""

from services.orchestrator.calls.arguments.fit import Faulty, Fitted, digest, fit
from services.orchestrator.calls.arguments.signature import call_line, type_name

__all__ = ["Faulty", "Fitted", "call_line", "digest", "fit", "type_name"]
