from pathlib import Path

import pytest

from services.cli.prepare.__main__ import prepare
from services.cli.prepare.database import check_major
from services.common.start import StartError


@pytest.mark.spec("FLD-048")
def test_a_cluster_of_another_major_is_refused_and_not_touched(tmp_path: Path) -> None:
    version = tmp_path / "PG_VERSION"
    version.write_text("17\n")
    with pytest.raises(StartError) as refused:
        check_major(tmp_path, "18")
    sentence = str(refused.value)
    assert "PostgreSQL 17" in sentence
    assert "PostgreSQL 18" in sentence
    assert " backup " in sentence
    assert " restore " in sentence
    assert [path.name for path in tmp_path.iterdir()] == ["PG_VERSION"]
    assert version.read_text() == "17\n"


def test_the_same_major_and_an_empty_volume_pass(tmp_path: Path) -> None:
    check_major(tmp_path, "18")
    (tmp_path / "PG_VERSION").write_text("18\n")
    check_major(tmp_path, "18")


@pytest.mark.parametrize("uid", ["0", "-1", "root", "4294967295", "1 000", "²"])
def test_the_crew_never_runs_as_root_or_as_nonsense(uid: str) -> None:
    with pytest.raises(StartError, match="CREW_UID"):
        prepare({"CREW_UID": uid, "CREW_GID": "1000"}, "")
