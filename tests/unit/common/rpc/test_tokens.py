"""Direction tokens."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.common.rpc.tokens import ARROWS, Arrow, Verifier, issue, issue_all, read_token
from services.common.start import StartError

TO_TOOLS = Arrow("orchestrator", "tools")


def test_each_side_gets_its_half_and_nothing_else(tmp_path: Path) -> None:
    assert issue_all(tmp_path) == len(ARROWS)
    assert issue_all(tmp_path) == 0
    names = {path.name for path in (tmp_path / "tools").iterdir()}
    assert names == {"orchestrator-to-tools.sha256"}
    assert {path.name for path in (tmp_path / "gateway").iterdir()} == {"gateway-to-orchestrator.token"}
    for path in tmp_path.glob("*/*"):
        assert path.stat().st_mode & 0o777 == 0o600
    for folder in tmp_path.iterdir():
        assert folder.stat().st_mode & 0o777 == 0o700


def test_tokens_are_long_and_all_different(tmp_path: Path) -> None:
    issue_all(tmp_path)
    tokens = {read_token(tmp_path / arrow.caller, arrow) for arrow in ARROWS}
    assert len(tokens) == len(ARROWS)
    # 256 bits in base64.
    assert {len(token) for token in tokens} == {43}


def test_a_token_opens_its_own_direction_alone(tmp_path: Path) -> None:
    issue_all(tmp_path)
    verifier = Verifier.read(tmp_path / "orchestrator", "orchestrator", ["gateway", "cli"])
    assert verifier.caller(read_token(tmp_path / "gateway", Arrow("gateway", "orchestrator"))) == "gateway"
    assert verifier.caller(read_token(tmp_path / "cli", Arrow("cli", "orchestrator"))) == "cli"
    assert verifier.caller(read_token(tmp_path / "orchestrator", TO_TOOLS)) is None
    digest = (tmp_path / "tools" / "orchestrator-to-tools.sha256").read_text().strip()
    for wrong in ("", " ", "x" * 43, digest, "ờ", "a\0b"):
        assert verifier.caller(wrong) is None


@pytest.mark.parametrize("lost", ["token", "sha256"])
@pytest.mark.parametrize("how", ["missing", "damaged", "empty"])
def test_a_lost_half_is_refused_by_name_and_made_anew_with_the_other(
    tmp_path: Path, lost: str, how: str
) -> None:
    caller, called = tmp_path / "caller", tmp_path / "called"
    issue(TO_TOOLS, caller, called)
    old = read_token(caller, TO_TOOLS)
    file = (caller if lost == "token" else called) / f"orchestrator-to-tools.{lost}"
    if how == "missing":
        file.unlink()
    else:
        file.write_text("" if how == "empty" else "../../etc/passwd")
    read = {
        "token": lambda: read_token(caller, TO_TOOLS),
        "sha256": lambda: Verifier.read(called, "tools", ["orchestrator"]),
    }
    with pytest.raises(StartError, match=file.name):
        read[lost]()
    assert issue(TO_TOOLS, caller, called)
    fresh = read_token(caller, TO_TOOLS)
    assert Verifier.read(called, "tools", ["orchestrator"]).caller(fresh) == "orchestrator"
    assert Verifier.read(called, "tools", ["orchestrator"]).caller(old) is None


def test_a_link_that_somebody_put_there_is_replaced_and_not_followed(tmp_path: Path) -> None:
    caller, called = tmp_path / "caller", tmp_path / "called"
    caller.mkdir()
    target = tmp_path / "target"
    target.write_text("precious")
    (caller / "orchestrator-to-tools.token").symlink_to(target)
    issue(TO_TOOLS, caller, called)
    assert target.read_text() == "precious"
    assert not (caller / "orchestrator-to-tools.token").is_symlink()
