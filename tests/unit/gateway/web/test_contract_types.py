"""The page's types are those of the protos."""

from __future__ import annotations

import runpy
from pathlib import Path

WEB = Path(__file__).resolve().parents[4] / "services" / "gateway" / "web"


def test_the_committed_types_are_what_the_protos_say() -> None:
    script = runpy.run_path(str(WEB / "scripts" / "contract_types.py"))
    committed = (WEB / "src" / "api" / "contract.ts").read_text(encoding="utf-8")
    assert script["render"]() == committed
