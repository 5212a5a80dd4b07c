"""Reading ``config.yaml`` under the environment, and saying what is wrong with it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from ruamel.yaml import YAML
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from services.common.settings.config import (
    AgentBudget,
    Budgets,
    CrewConfig,
    FromEnvironment,
    Price,
    ToolHostEntry,
)
from services.common.shell_defaults import usable_allow_patterns
from services.common.start import Phrase, StartError
from services.common.wording import load

Source = Literal["env", "config", "default"]

_MAX_BYTES = 1024 * 1024
_PROBLEMS = {
    "int_type": "whole_number",
    "int_parsing": "whole_number",
    "int_from_float": "whole_number",
    "float_type": "number",
    "finite_number": "number",
    "bool_type": "switch",
    "greater_than_equal": "at_least",
    "less_than_equal": "at_most",
    "string_too_short": "empty",
    "string_too_long": "too_long",
    "tuple_type": "list",
    "list_type": "list",
    "string_type": "text",
    "path_type": "text",
    "mapping_type": "map",
    "dict_type": "map",
    "model_type": "map",
    "model_attributes_type": "map",
    "missing": "missing",
    "literal_error": "one_of",
}


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """The settings in force, where each comes from, and what was passed over in reading them."""

    values: CrewConfig
    sources: Mapping[str, Source]
    # One sentence each, in the configured language.
    warnings: tuple[str, ...] = ()

    def source(self, key: str) -> Source:
        """Whether the value of `key` is the environment's, the file's or the default."""
        return self.sources[key]


def load_config(path: Path | None, environ: Mapping[str, str]) -> LoadedConfig:
    """Read ``config.yaml`` and let the environment win over it (AGT-015).

    Args:
        path: The file; one that does not exist, or None, means every default (AGT-017).
        environ: Where the ``MY_AGENT_…`` variables are looked up.

    Raises:
        StartError: The file cannot be read, or a key or value is not allowed; it names the key and
            for an unknown key the nearest known one, never the value.
    """
    written = read_map(path) if path is not None else {}
    raw: dict[str, Any] = dict(written)
    sources: dict[str, Source] = {}
    variables: dict[str, str] = {}
    for key, info in CrewConfig.model_fields.items():
        variable = next((mark for mark in info.metadata if isinstance(mark, FromEnvironment)), None)
        if variable is not None and variable.given(environ):
            raw[key] = variable.read(environ[variable.name])
            sources[key] = "env"
            variables[key] = variable.name
        else:
            sources[key] = "config" if key in written else "default"
    try:
        values = CrewConfig.model_validate(raw)
    except ValidationError as error:
        raise _refusal(error, path, variables) from None
    return _without_wildcards(LoadedConfig(values, sources))


def read_map(path: Path) -> dict[str, Any]:
    """The map that a YAML file of the home holds; an absent or empty file is an empty map.

    Raises:
        StartError: It cannot be read, is too large, or is no YAML map with text keys.
    """
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise StartError("error.settings.file_too_large", file=path, limit=_MAX_BYTES)
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError:
        raise StartError("error.settings.file_not_text", file=path) from None
    except OSError as error:
        raise StartError("error.settings.file_unreadable", file=path, problem=error.strerror) from None
    try:
        tree = YAML(typ="safe", pure=True).load(text)
    except DuplicateKeyError as error:
        line = error.problem_mark.line + 1 if error.problem_mark is not None else 1
        raise StartError("error.settings.key_twice", file=path, line=line) from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
        raise StartError(
            "error.settings.not_yaml", file=path, line=line, column=column, problem=error.problem
        ) from None
    except (YAMLError, ValueError, RecursionError):
        raise StartError("error.settings.not_yaml_at_all", file=path) from None
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise StartError("error.settings.not_a_map", file=path)
    for key in tree:
        if not isinstance(key, str):
            raise StartError("error.settings.unknown_key", file=path, key=str(key)[:80])
    return tree


def _refusal(error: ValidationError, path: Path | None, variables: Mapping[str, str]) -> StartError:
    """One sentence about the first fault, an unknown key before a wrong value."""
    faults = sorted(error.errors(include_url=False), key=lambda fault: fault["type"] != "extra_forbidden")
    fault = faults[0]
    location = [str(part) for part in fault["loc"]]
    key = ".".join(location)[:200]
    if fault["type"] == "extra_forbidden":
        near = difflib.get_close_matches(location[-1], _known_keys(location[:-1]), n=1, cutoff=0.5)
        if near:
            nearest = ".".join([*location[:-1], near[0]])
            return StartError("error.settings.unknown_key_near", file=path, key=key, nearest=nearest)
        return StartError("error.settings.unknown_key", file=path, key=key)
    problem = problem_of(fault)
    if location[0] in variables:
        return StartError("error.settings.variable", variable=variables[location[0]], problem=problem)
    return StartError("error.settings.value", file=path, key=key, problem=problem)


def problem_of(fault: ErrorDetails) -> Phrase:
    """What is wrong with a value, as the end of a sentence about it."""
    context = fault.get("ctx", {})
    name = context["problem"] if fault["type"] == "crew" else _PROBLEMS.get(fault["type"], "other")
    limit = context.get("ge", context.get("le", context.get("max_length")))
    expected = str(context.get("expected", "")).replace("'", "")
    return Phrase(f"error.settings.problem.{name}", {"limit": limit, "expected": expected})


def _known_keys(parents: list[str]) -> list[str]:
    model: type[BaseModel]
    match parents:
        case ["budgets"]:
            model = Budgets
        case ["budgets", *_]:
            model = AgentBudget
        case ["prices", _]:
            model = Price
        case ["tool_hosts", _]:
            model = ToolHostEntry
        case _:
            model = CrewConfig
    return list(model.model_fields)


def _without_wildcards(loaded: LoadedConfig) -> LoadedConfig:
    """Drop allow patterns that would let every command through, each on its own (AGT-025)."""
    kept, dropped = usable_allow_patterns(loaded.values.shell_allow_patterns)
    if not dropped:
        return loaded
    values = loaded.values.model_copy(update={"shell_allow_patterns": kept})
    texts = load("common")
    sentences = tuple(
        Phrase("error.settings.allow_pattern_dropped", {"pattern": pattern}).text(texts, values.language)
        for pattern in dropped
    )
    return LoadedConfig(values, loaded.sources, sentences)
