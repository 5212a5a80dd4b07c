"""What an interpreter can come to: a request, or one of the ends of a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

# The names that the prelude gives to its stops, and memory, which is the engine's own.
StopCause = Literal["steps", "depth", "value", "integer", "memory", "calls", "questions", "arguments"]
DeathCause = Literal["cpu", "alone", "total", "died", "protocol"]


@dataclass(frozen=True, slots=True)
class Asked:
    """The program waits for an answer. Nothing in it has been looked at yet.

    Attributes:
        arguments: What `__host` was called with, as the worker sent it.
    """

    arguments: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Ran:
    """The program ran to its end.

    Attributes:
        steps: As the program counted.
        writes: Keys and their JSON, None for a forgotten key.
    """

    steps: int
    writes: Sequence[tuple[str, str | None]]


@dataclass(frozen=True, slots=True)
class Raised:
    """An error of the script that nothing caught."""

    kind: str
    message: str
    line: int


@dataclass(frozen=True, slots=True)
class Stopped:
    """A limit that the program or the engine enforced."""

    cause: StopCause
    line: int


@dataclass(frozen=True, slots=True)
class Died:
    """The interpreter is gone, or was never worth believing."""

    cause: DeathCause


Outcome = Asked | Ran | Raised | Stopped | Died
