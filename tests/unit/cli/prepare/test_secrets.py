import os
from pathlib import Path

import pytest

from services.cli.prepare.rights import Identity
from services.cli.prepare.secrets import make_secrets
from services.common.rpc.tokens import ARROWS, Verifier, read_token

_SERVICES = ("gateway", "orchestrator", "tools", "script_sandbox", "cli", "postgres")


@pytest.fixture
def identities() -> dict[str, Identity]:
    own = Identity(os.getuid(), os.getgid())
    return dict.fromkeys(_SERVICES, own)


def _texts(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}


def test_every_arrow_gets_a_token_that_its_called_side_knows(
    tmp_path: Path, identities: dict[str, Identity]
) -> None:
    make_secrets(tmp_path, identities)
    for arrow in ARROWS:
        token = read_token(tmp_path / arrow.caller, arrow)
        known = Verifier.read(tmp_path / arrow.called, arrow.called, [arrow.caller])
        assert known.caller(token) == arrow.caller


def test_no_service_holds_what_opens_another_ones_door(
    tmp_path: Path, identities: dict[str, Identity]
) -> None:
    make_secrets(tmp_path, identities)
    assert {path.name for path in (tmp_path / "tools").iterdir()} == {"orchestrator-to-tools.sha256"}
    assert {path.name for path in (tmp_path / "script_sandbox").iterdir()} == {
        "orchestrator-to-script_sandbox.sha256"
    }
    assert {path.name for path in (tmp_path / "gateway").iterdir()} == {"gateway-to-orchestrator.token"}
    app = (tmp_path / "orchestrator" / "database.pgpass").read_text()
    owner = (tmp_path / "cli" / "database.pgpass").read_text()
    assert app.startswith("*:*:*:crew_app:")
    assert owner.startswith("*:*:*:crew_owner:")
    assert app.rpartition(":")[2] != owner.rpartition(":")[2]


def test_files_are_the_users_alone(tmp_path: Path, identities: dict[str, Identity]) -> None:
    make_secrets(tmp_path, identities)
    for path in tmp_path.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_a_second_run_changes_nothing(tmp_path: Path, identities: dict[str, Identity]) -> None:
    make_secrets(tmp_path, identities)
    before = _texts(tmp_path)
    make_secrets(tmp_path, identities)
    assert _texts(tmp_path) == before


def test_a_lost_or_damaged_file_is_made_again_to_fit(tmp_path: Path, identities: dict[str, Identity]) -> None:
    make_secrets(tmp_path, identities)
    before = _texts(tmp_path)
    (tmp_path / "orchestrator" / "database.pgpass").unlink()
    (tmp_path / "cli" / "database.pgpass").write_text("half a li")
    make_secrets(tmp_path, identities)
    assert _texts(tmp_path) == before


def test_a_damaged_password_is_replaced_on_both_sides(
    tmp_path: Path, identities: dict[str, Identity]
) -> None:
    make_secrets(tmp_path, identities)
    password = tmp_path / "postgres" / "app.password"
    password.write_text("'; drop role crew_app")
    make_secrets(tmp_path, identities)
    fresh = password.read_text().strip()
    assert fresh in (tmp_path / "orchestrator" / "database.pgpass").read_text()
    assert fresh.isalnum()
