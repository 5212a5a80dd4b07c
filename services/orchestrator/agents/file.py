"""What ``agent.yaml`` may say (agents.md, section 3).

Keys of areas that are not part of the system are unknown keys, as in ``config.yaml``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from services.common.settings.config import Money, Names, Route, Routes
from services.common.settings.loading import problem_of, read_map
from services.common.start import StartError

FILE_NAME = "agent.yaml"

_PERSONA_FILES = ("AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md")


def _empty_as_none(value: object) -> object:
    return None if value == "" else value


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ShellLimitsEntry(_Strict):
    """Limits of one command of the shell (PIP-160)."""

    cpu_seconds: Annotated[int, Field(ge=1, le=86_400)] = 600
    memory_bytes: Annotated[int, Field(ge=16 * 1024**2)] = 4 * 1024**3
    processes: Annotated[int, Field(ge=1, le=100_000)] = 256
    file_bytes: Annotated[int, Field(ge=1)] = 1024**3


class ReviewEntry(_Strict):
    """Whose calls a second model judges (PIP-100)."""

    tools: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=200)], ...],
        Field(strict=False, min_length=1, max_length=100),
    ]
    route: Route
    sees: Literal["call", "conversation"] = "call"
    on_deny: Literal["ask", "deny"] = "ask"


class AgentFile(_Strict):
    """``agent.yaml``; None stands for the crew's or the mode's value."""

    name: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    description: Annotated[str, Field(max_length=4000)] = ""
    mode: Literal["assistant", "work"] = "assistant"
    routes: Routes | None = None
    escalation_route: Annotated[Route | None, BeforeValidator(_empty_as_none)] = None
    reasoning: Annotated[
        Literal["minimal", "low", "medium", "high"] | None, BeforeValidator(_empty_as_none)
    ] = None
    workspace: Annotated[str, Field(min_length=1, max_length=4000)] = "workspace"
    persona_files: Names = _PERSONA_FILES
    cost_cap_usd: Money | None = None
    max_steps: Annotated[int, Field(ge=1, le=10_000)] | None = None
    max_minutes: Annotated[int, Field(ge=1, le=1440)] = 60
    autonomous: bool | None = None
    tools: Names = ()
    tool_output_chars: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    tool_execution: Literal["parallel", "sequential"] | None = None
    script_calls: Literal["none", "read_only", "gated"] = "read_only"
    script_llm: bool = True
    review: Annotated[tuple[ReviewEntry, ...], Field(strict=False, max_length=50)] = ()
    write_paths: Names = ()
    shell_network: bool = True
    shell_write_paths: Names = ()
    shell_ask_patterns: Names | None = None
    shell_allow_patterns: Names | None = None
    shell_deny_patterns: Names = ()
    shell_limits: ShellLimitsEntry = ShellLimitsEntry()


def read_agent_file(path: Path) -> tuple[AgentFile, dict[str, object]]:
    """Read and check one profile; an absent file is one that says nothing.

    Returns:
        The profile, and its keys as written.

    Raises:
        StartError: A key is unknown or a value not allowed; it names file and key (AGT-040).
    """
    written = read_map(path)
    try:
        return AgentFile.model_validate(written), written
    except ValidationError as error:
        faults = error.errors(include_url=False)
        unknown = [fault for fault in faults if fault["type"] == "extra_forbidden"]
        fault = (unknown or faults)[0]
        key = ".".join(str(part) for part in fault["loc"] if not str(part).startswith("function-"))[:200]
        if unknown:
            raise StartError("error.settings.unknown_key", file=path, key=key) from None
        raise StartError("error.settings.value", file=path, key=key, problem=problem_of(fault)) from None
