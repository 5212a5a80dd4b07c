"""What the service tells the launcher of a worker, as JSON in its first argument."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Literal, get_args

Form = Literal["namespaces", "landlock"]
FORMS: tuple[Form, ...] = get_args(Form)


@dataclass(frozen=True, slots=True)
class FencePlan:
    """How one worker is shut in.

    Attributes:
        form: Own namespaces, or Landlock alone; both beside the system-call filter.
        program: The interpreter, by absolute path.
        files: All that may be read and run: the interpreter and the libraries it is loaded with.
        cpu_seconds: Of processor time, after which the kernel ends it (SCR-238).
        memory_bytes: Of address space: the values a script may hold, and the interpreter.
        open_files: Descriptors at once.
    """

    form: Form
    program: str
    files: tuple[str, ...]
    cpu_seconds: int
    memory_bytes: int
    open_files: int

    def to_json(self) -> str:
        """The plan as the launcher reads it."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> FencePlan:
        """Read what `to_json` wrote."""
        raw = json.loads(text)
        return cls(**{**raw, "files": tuple(raw["files"])})
