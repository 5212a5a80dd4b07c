import os
from pathlib import Path

import pytest

from services.cli.prepare.mounts import Mount
from services.cli.prepare.rights import Identity, Place, settle
from services.common.start import StartError

_VOLUME = Mount("/var/lib/docker/volumes/crew_home/_data", read_only=False)
_FOLDER = Mount("/srv/crew", read_only=False)

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can become the crew's user")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    # The crew's user has to get as far as the folder itself.
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    folder = tmp_path / "home"
    folder.mkdir(mode=0o755)
    return Place(folder, Identity(1000, 1001), 0o2775, "/srv/our crew")


@needs_root
@pytest.mark.spec("FLD-045")
@pytest.mark.parametrize("uid", [1000, 1001, 501])
def test_a_fresh_volume_is_given_to_the_crew(place: Place, uid: int) -> None:
    given = Place(place.path, Identity(uid, 1001), place.mode)
    settle(given, _VOLUME)
    status = place.path.stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (uid, 1001, 0o2775)
    settle(given, _VOLUME)


@needs_root
@pytest.mark.spec("FLD-045")
def test_a_folder_of_the_owner_is_refused_with_the_command_that_repairs_it(place: Place) -> None:
    with pytest.raises(StartError) as refused:
        settle(place, _FOLDER)
    sentence = str(refused.value)
    assert str(place.path) in sentence
    assert "user 0 " in sentence
    assert "user 1000" in sentence
    assert sentence.splitlines()[-1].strip() == "sudo chown -R 1000:1001 '/srv/our crew'"
    assert place.path.stat().st_uid == 0


@needs_root
def test_a_volume_with_files_of_another_user_is_left_alone(place: Place) -> None:
    (place.path / "kept").write_text("x")
    with pytest.raises(StartError, match="chown"):
        settle(place, _VOLUME)
    assert place.path.stat().st_uid == 0


@needs_root
@pytest.mark.spec("FLD-045")
def test_a_folder_inside_that_cannot_be_written_is_named(place: Place) -> None:
    settle(place, _VOLUME)
    (place.path / "default").mkdir(mode=0o755)
    with pytest.raises(StartError) as refused:
        settle(place, _FOLDER)
    assert f"{place.path}/default" in str(refused.value)
    assert "sudo chown -R 1000:1001 '/srv/our crew/default'" in str(refused.value)


@needs_root
def test_a_folder_that_its_owner_may_not_write_gets_another_command(place: Place) -> None:
    os.chown(place.path, 1000, 1001)
    place.path.chmod(0o555)
    with pytest.raises(StartError, match=r"sudo chmod -R u\+rwX '/srv/our crew'"):
        settle(place, _FOLDER)


@needs_root
def test_a_folder_that_the_group_may_write_is_enough(place: Place) -> None:
    os.chown(place.path, 0, 1001)
    place.path.chmod(0o775)
    settle(place, _FOLDER)
    assert list(place.path.iterdir()) == []


@pytest.mark.spec("FLD-045")
def test_a_read_only_mount_is_refused_by_name(place: Place) -> None:
    with pytest.raises(StartError, match="read-only"):
        settle(place, Mount("/srv/crew", read_only=True))


@needs_root
def test_a_link_inside_is_not_followed(place: Place, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o755)
    settle(place, _VOLUME)
    (place.path / "link").symlink_to(elsewhere)
    settle(place, _FOLDER)
    assert elsewhere.stat().st_uid == 0
