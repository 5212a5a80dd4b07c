"""The provider layer by itself, and the gate and registry without anything that draws (PIP-119)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
LISTS = (
    "import sys, {module}; print('\\n'.join(name for name in sys.modules if name.startswith('services.')))"
)


@pytest.mark.spec("PIP-119")
@pytest.mark.parametrize(
    ("module", "kept_out"),
    [
        (
            "services.orchestrator.models.facade",
            (
                "services.orchestrator.turns",
                "services.orchestrator.calls",
                "services.orchestrator.hosts",
                "services.orchestrator.store",
                "services.orchestrator.api",
                "services.gateway",
            ),
        ),
        ("services.orchestrator.calls.gate", ("services.gateway", "services.orchestrator.api")),
        ("services.orchestrator.calls.registry", ("services.gateway", "services.orchestrator.api")),
    ],
)
def test_a_layer_loads_without_what_stands_above_it(module: str, kept_out: tuple[str, ...]) -> None:
    loaded = subprocess.run(
        [sys.executable, "-c", LISTS.format(module=module)],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'generated'}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout.split()
    assert module in loaded
    assert [name for name in loaded if name.startswith(kept_out)] == []
