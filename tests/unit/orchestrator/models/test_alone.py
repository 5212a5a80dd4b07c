"""What the model layer, the gate and the registry need beside themselves: nothing above them (PIP-119)."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
LOADED = "import json, sys\nimport {module}\nprint(json.dumps(sorted(sys.modules)))"
ABOVE = ("turns", "calls", "hosts", "store", "api", "context", "app")
DRAWING = ("services.gateway", "fastapi", "starlette", "telegram", "playwright")


def loaded_by(module: str) -> set[str]:
    """The modules that a process of its own holds after importing one."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED.format(module=module)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return set(json.loads(done.stdout))


@pytest.mark.spec("PIP-119")
def test_the_model_layer_is_imported_without_a_turn_a_registry_or_a_host() -> None:
    modules = loaded_by("services.orchestrator.models.facade")
    found = {name for name in modules for part in ABOVE if name.startswith(f"services.orchestrator.{part}")}
    assert not found
    assert "psycopg" not in modules
    assert "grpc" not in modules


@pytest.mark.spec("PIP-119")
@pytest.mark.parametrize("module", ["gate", "registry"])
def test_gate_and_registry_import_nothing_that_draws(module: str) -> None:
    modules = loaded_by(f"services.orchestrator.calls.{module}")
    assert not [name for name in modules if name.startswith(DRAWING)]


@pytest.mark.spec("PIP-119")
def test_the_import_contracts_hold_both() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    alone = next(
        contract
        for contract in declared
        if contract.get("source_modules") == ["services.orchestrator.models"]
    )
    for part in ("turns", "calls", "hosts"):
        assert f"services.orchestrator.{part}" in alone["forbidden_modules"]
    independent = next(contract for contract in declared if contract["type"] == "independence")
    assert {"services.orchestrator", "services.gateway"} <= set(independent["modules"])
