"""What passes between the tools service and the guard: a plan in, an outcome out, both JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

Form = Literal["none", "bubblewrap", "landlock"]
# Why a command was ended before its shell had: by the service, or by a limit the guard counts.
Ended = Literal["timeout", "cancelled", "service_gone", "processes", "cpu"]
# The step of setting up that failed; the command did not run then.
Stage = Literal[
    "plan", "workspace", "limits", "privileges", "files", "ports", "filter", "program", "bubblewrap"
]

END_FOR_TIMEOUT = b"t"
END_FOR_CANCELLATION = b"c"


@dataclass(frozen=True, slots=True)
class Limits:
    """PIP-160: seconds of CPU over the command, bytes a process and a file, processes at once."""

    cpu_seconds: int
    memory_bytes: int
    processes: int
    file_bytes: int


@dataclass(frozen=True, slots=True)
class Plan:
    """One command, ready to run.

    Attributes:
        arguments: The program by absolute path, and its arguments.
        network: Whether the sandbox leaves internet sockets.
        ports_ruleset: Inherited descriptor of the Landlock ruleset of ports, or -1.
        bubblewrap: Program and arguments before the command; form `bubblewrap` only.
        readable: Paths to read and run from; form `landlock` only, as the two below.
        writable: Paths to write.
        devices: Device files to use.
    """

    arguments: tuple[str, ...]
    directory: str
    environment: dict[str, str]
    umask: int
    limits: Limits
    form: Form = "none"
    network: bool = True
    ports_ruleset: int = -1
    bubblewrap: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()

    def to_json(self) -> bytes:
        """Encode for `from_json`; undecodable bytes of names survive."""
        return json.dumps(asdict(self)).encode("ascii")

    @classmethod
    def from_json(cls, data: bytes) -> Plan:
        """Decode what `to_json` made."""
        fields: dict[str, Any] = json.loads(data)
        limits = Limits(**fields.pop("limits"))
        for name, value in fields.items():
            if isinstance(value, list):
                fields[name] = tuple(value)
        return cls(limits=limits, **fields)


@dataclass(slots=True)
class Outcome:
    """How a command ended.

    Attributes:
        exit_code: Of the shell; None when a signal ended it or it never began.
        failed_stage: Set when the command could not be started; `failure` says why.
        survivors: Processes that could not be ended (they run under another user's rights).
    """

    exit_code: int | None = None
    signal: int | None = None
    ended: Ended | None = None
    failed_stage: Stage | None = None
    failure: str = ""
    cpu_seconds: float = 0.0
    survivors: int = 0

    def to_json(self) -> bytes:
        """Encode for `from_json`."""
        return json.dumps(asdict(self)).encode("ascii")

    @classmethod
    def from_json(cls, data: bytes) -> Outcome:
        """Decode what `to_json` made."""
        return cls(**json.loads(data))
