"""Known secret values, in text and inside JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.orchestrator.calls.masking import SecretMask


@pytest.mark.spec("PIP-134", "PIP-156")
@given(st.text(min_size=6).filter(lambda value: value.strip()), st.booleans())
def test_a_value_is_found_in_json_however_it_is_escaped(secret: str, ascii_alone: bool) -> None:
    written = json.dumps({"command": f"<{secret}>"}, ensure_ascii=ascii_alone)
    masked = SecretMask([secret]).text(written)
    escaped = json.dumps(secret, ensure_ascii=ascii_alone)[1:-1]
    assert f"<{escaped}>" not in masked
