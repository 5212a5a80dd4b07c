"""What ``config.yaml`` may say (AGT-016, AGT-413), with defaults and checks.

Keys of areas that are not part of the system are unknown keys, so that nobody believes a setting
to work which nothing reads.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, available_timezones

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from services.common.shell_defaults import DEFAULT_ASK_PATTERNS

DEFAULT_ROUTES = ("openrouter:deepseek/deepseek-v4-flash",)
DEFAULT_VISION_ROUTES = ("openrouter:google/gemini-2.5-flash-lite", "openrouter:qwen/qwen3-vl-8b-instruct")
DEFAULT_AUDIO_ROUTES = ("openrouter:google/gemini-2.5-flash-lite",)
_ROUTE = re.compile(r"[a-z][a-z0-9_-]*:\S+")
_NAME = re.compile(r"[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*")
_PLAIN_PATH = re.compile(r"[A-Za-z0-9/._~-]*")


@dataclass(frozen=True, slots=True)
class FromEnvironment:
    """The environment variable of a setting, and how its text becomes the setting's raw value.

    A variable without text counts as not set, since deployments hand on what nobody filled in,
    except where emptiness is a value of its own.
    """

    name: str
    read: Callable[[str], object]
    empty_counts: bool = False

    def given(self, environ: Mapping[str, str]) -> bool:
        """Whether the environment decides this setting."""
        text = environ.get(self.name)
        return text is not None and (self.empty_counts or bool(text.strip()))


def comma_list(text: str) -> list[str]:
    """Entries separated by commas, blanks around them dropped."""
    return [entry.strip() for entry in text.split(",") if entry.strip()]


def pattern_list(text: str) -> list[str]:
    """Entries separated by semicolons, kept as they are: ``rm -r `` ends in a blank on purpose."""
    return [entry for entry in text.split(";") if entry.strip()]


def switch(text: str) -> object:
    """``1 true yes on`` and ``0 false no off``; anything else is left for the check to refuse."""
    word = text.strip().lower()
    if word in {"1", "true", "yes", "on"}:
        return True
    return False if word in {"0", "false", "no", "off", ""} else text


def whole_number(text: str) -> object:
    """An integer, or the text itself for the check to refuse."""
    return int(text) if re.fullmatch(r"\s*[+-]?\d{1,18}\s*", text) else text


def number(text: str) -> object:
    """A number, or the text itself for the check to refuse."""
    try:
        return float(text)
    except ValueError:
        return text


def _refuse(problem: str) -> PydanticCustomError:
    """A refusal whose sentence is ``error.settings.<problem>`` of the catalogue."""
    return PydanticCustomError("crew", "{problem}", {"problem": problem})


def _split_string(value: object) -> object:
    return comma_list(value) if isinstance(value, str) else value


def _route(value: str) -> str:
    if not _ROUTE.fullmatch(value):
        raise _refuse("route")
    return value


def _zone(value: str) -> str:
    try:
        ZoneInfo(value)
    except (KeyError, ValueError, OSError):
        raise _refuse("timezone") from None
    return value


def _web_url(value: str) -> str:
    value = value.strip().removesuffix("/")
    if not value:
        return value
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        raise _refuse("web_url") from None
    plain = (
        parts.scheme in {"http", "https"}
        and parts.hostname
        and "@" not in parts.netloc
        and not value.endswith((":", "?", "#"))
        and not (parts.query or parts.fragment)
        and port != 0
        and _PLAIN_PATH.fullmatch(parts.path)
    )
    if not plain:
        raise _refuse("web_url")
    return value


def _absolute(value: Path) -> Path:
    value = value.expanduser()
    if not value.is_absolute():
        raise _refuse("absolute_path")
    return value


def _host_names(value: Mapping[str, ToolHostEntry]) -> Mapping[str, ToolHostEntry]:
    folded: set[str] = set()
    for name in value:
        if len(name) > 32 or not _NAME.fullmatch(name):
            raise _refuse("host_name")
        if name.lower().replace("-", "_") in folded:
            raise _refuse("host_name_twice")
        folded.add(name.lower().replace("-", "_"))
    return value


def _mode_bits(value: int) -> int:
    # YAML 1.2 reads 0002 as the decimal number 2: only a mask without owner bits is meant.
    if value & ~0o077:
        raise _refuse("umask")
    return value


def _mask_text(value: object) -> object:
    if isinstance(value, str) and re.fullmatch(r"(0o?)?[0-7]{1,4}", value):
        return int(value.removeprefix("0o"), 8)
    return value


def machine_timezone() -> str:
    """The IANA name of the machine's zone; ``UTC`` when it has no name."""
    candidates = [os.environ.get("TZ", "").removeprefix(":")]
    with contextlib.suppress(OSError, UnicodeDecodeError):
        candidates.append(Path("/etc/timezone").read_text("utf-8").strip())
    candidates.append(str(Path("/etc/localtime").resolve()).partition("/zoneinfo/")[2])
    for name in candidates:
        if name and name in available_timezones():
            return name
    return "UTC"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


# USD; the upper bound is what the database keeps with its digits.
Money = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]
Route = Annotated[str, AfterValidator(_route)]
# A list in YAML arrives as list; only a tuple can be frozen.
Names = Annotated[tuple[str, ...], Field(strict=False)]
Routes = Annotated[tuple[Route, ...], Field(strict=False), BeforeValidator(_split_string)]


class Price(_Strict):
    """The owner's own price of a route in USD per million tokens; 0 for a local model (FLD-018)."""

    input: Money
    output: Money
    cached_input: Money | None = None
    # The most tokens a reply has; an estimated charge is never above it times the price.
    max_output_tokens: Annotated[int, Field(ge=1, le=10_000_000)] | None = None


class AgentBudget(_Strict):
    """Most that may be spent, in USD; None is no limit, 0 lets no model be asked."""

    day: Money | None = None
    month: Money | None = None


class CrewBudget(AgentBudget):
    """The crew's own: five dollars a day unless another amount, or ``null``, is written."""

    day: Money | None = 5.0


class Budgets(_Strict):
    """Budgets of the crew, of agents by id and of schedules by ``<agent>/<schedule>`` (FLD-016)."""

    crew: CrewBudget = CrewBudget()
    agents: Mapping[str, AgentBudget] = Field(default_factory=dict)
    schedules: Mapping[str, AgentBudget] = Field(default_factory=dict)


class ToolHostEntry(_Strict):
    """A tool host somebody added: where it is, who may use it and how far it is believed."""

    # host:port or unix:/path.
    address: Annotated[str, Field(min_length=1, max_length=300)]
    # Holds the token the orchestrator shows to it; relative paths start at the home.
    token_file: Annotated[Path, Field(strict=False)]
    # Ids of the agents that get its tools; empty means all.
    agents: Names = ()
    # Whether its word that a call is routine, repeatable or harmless counts.
    trust: bool = False


class CrewConfig(_Strict):
    """``config.yaml`` with defaults filled in; the names are the keys."""

    routes: Annotated[Routes, FromEnvironment("MY_AGENT_ROUTES", comma_list)] = DEFAULT_ROUTES
    vision_routes: Annotated[
        Routes, FromEnvironment("MY_AGENT_VISION_ROUTES", comma_list, empty_counts=True)
    ] = DEFAULT_VISION_ROUTES
    audio_routes: Annotated[
        Routes, FromEnvironment("MY_AGENT_AUDIO_ROUTES", comma_list, empty_counts=True)
    ] = DEFAULT_AUDIO_ROUTES
    # Names new conversations after their first turn; none: their first words do (TRN-016).
    title_route: Annotated[Route | None, FromEnvironment("MY_AGENT_TITLE_ROUTE", str.strip)] = None
    # USD a conversation; 0 means no cap.
    cost_cap_usd: Annotated[Money, FromEnvironment("MY_AGENT_COST_CAP_USD", number)] = 0.5
    max_steps: Annotated[int, Field(ge=1, le=10_000), FromEnvironment("MY_AGENT_MAX_STEPS", whole_number)] = (
        12
    )
    autonomous_default: Annotated[bool, FromEnvironment("MY_AGENT_AUTONOMOUS", switch)] = False
    approval_ttl_seconds: Annotated[
        int, Field(ge=1, le=31_536_000), FromEnvironment("MY_AGENT_APPROVAL_TTL_SECONDS", whole_number)
    ] = 600
    # How long ended runs and decided requests are kept (FLD-052).
    keep_days: Annotated[int, Field(ge=1, le=36_500), FromEnvironment("MY_AGENT_KEEP_DAYS", whole_number)] = (
        90
    )
    # Full months of the audit trail kept beside the one at hand (FLD-052).
    audit_months: Annotated[
        int, Field(ge=1, le=1_200), FromEnvironment("MY_AGENT_AUDIT_MONTHS", whole_number)
    ] = 24
    shell_ask_patterns: Annotated[
        Names, FromEnvironment("MY_AGENT_SHELL_ASK_PATTERNS", pattern_list, empty_counts=True)
    ] = DEFAULT_ASK_PATTERNS
    shell_allow_patterns: Annotated[
        Names, FromEnvironment("MY_AGENT_SHELL_ALLOW_PATTERNS", pattern_list)
    ] = ()
    tool_output_chars: Annotated[
        int, Field(ge=1, le=1_000_000), FromEnvironment("MY_AGENT_TOOL_OUTPUT_CHARS", whole_number)
    ] = 8000
    tool_execution: Literal["parallel", "sequential"] = "parallel"
    tool_hosts: Annotated[Mapping[str, ToolHostEntry], AfterValidator(_host_names)] = Field(
        default_factory=dict
    )
    language: Annotated[Literal["en", "vi"], FromEnvironment("MY_AGENT_LANGUAGE", str.strip)] = "en"
    timezone: Annotated[str, AfterValidator(_zone), FromEnvironment("MY_AGENT_TIMEZONE", str.strip)] = Field(
        default_factory=machine_timezone
    )
    web_url: Annotated[str, AfterValidator(_web_url), FromEnvironment("MY_AGENT_WEB_URL", str)] = ""
    openrouter_providers: Annotated[
        Annotated[Names, BeforeValidator(_split_string)],
        FromEnvironment("MY_AGENT_OPENROUTER_PROVIDERS", comma_list),
    ] = ()
    openrouter_provider_fallbacks: Annotated[
        bool, FromEnvironment("MY_AGENT_OPENROUTER_PROVIDER_FALLBACKS", switch)
    ] = True
    # By route, ``provider:model``.
    prices: Mapping[Route, Price] = Field(default_factory=dict)
    # Tokens that fit into a model whose provider does not list them, by route; ``provider:*`` for all
    # models of a provider (FLD-003).
    context_tokens: Mapping[Route, Annotated[int, Field(ge=1_000, le=100_000_000)]] = Field(
        default_factory=dict
    )
    budgets: Budgets = Budgets()
    # Parent of the agents' workspaces where they are not kept in the home.
    workspaces_dir: Annotated[
        Path | None,
        Field(strict=False),
        AfterValidator(lambda path: path and _absolute(path)),
        FromEnvironment("MY_AGENT_WORKSPACES_DIR", str.strip),
    ] = None
    # Mask of files made in workspaces: 0664 and 2775 with the default (FLD-054).
    umask: Annotated[
        int,
        BeforeValidator(_mask_text),
        AfterValidator(_mode_bits),
        FromEnvironment("MY_AGENT_UMASK", str.strip),
    ] = 0o002
