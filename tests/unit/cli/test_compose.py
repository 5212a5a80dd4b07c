import os
import stat
from pathlib import Path

import pytest

from services.cli.commands.compose import caller, write_ids

_SUDO = {"SUDO_UID": "1001", "SUDO_GID": "1002"}


@pytest.mark.spec("FLD-045")
def test_the_first_start_writes_the_ids_and_the_second_nothing(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    uid, gid = caller(_SUDO)
    assert write_ids(file, _SUDO)
    assert file.read_text() == f"CREW_UID={uid}\nCREW_GID={gid}\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not write_ids(file, {})


def test_what_the_owner_wrote_stays(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("# ours\nOPENROUTER_API_KEY=k\nCREW_UID=501")
    file.chmod(0o640)
    assert write_ids(file, _SUDO)
    assert file.read_text() == f"# ours\nOPENROUTER_API_KEY=k\nCREW_UID=501\nCREW_GID={caller(_SUDO)[1]}\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert [path.name for path in tmp_path.iterdir()] == [".env"]


@pytest.mark.skipif(os.getuid() != 0, reason="is about root")
@pytest.mark.parametrize("environ", [{}, {"SUDO_UID": "0", "SUDO_GID": "0"}, {"SUDO_UID": ""}])
def test_root_does_not_become_the_crew(environ: dict[str, str]) -> None:
    assert caller(environ) == (1000, 1000)
