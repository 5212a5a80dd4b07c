from pathlib import Path

from services.cli.prepare.mounts import mount_at

_TABLE = """\
620 500 0:50 / / ro,relatime master:1 - overlay overlay rw,lowerdir=/a
621 620 254:0 /var/lib/docker/volumes/crew_home/_data /crew/home rw,relatime - ext4 /dev/vda rw
622 620 254:0 /srv/our\\040crew/files /workspaces ro,relatime - ext4 /dev/vda rw
623 620 254:0 /srv/volumes/_data /crew/other rw,relatime - ext4 /dev/vda rw
"""


def test_a_named_volume_is_told_from_a_folder_of_the_owner() -> None:
    volume = mount_at(Path("/crew/home"), _TABLE)
    folder = mount_at(Path("/workspaces"), _TABLE)
    assert volume is not None
    assert volume.named_volume
    assert not volume.read_only
    assert folder is not None
    assert not folder.named_volume
    assert folder.read_only
    assert folder.source == "/srv/our crew/files"


def test_a_folder_that_only_looks_like_a_volume_is_the_owners() -> None:
    mount = mount_at(Path("/crew/other"), _TABLE)
    assert mount is not None
    assert not mount.named_volume


def test_the_last_mount_on_one_point_is_in_force() -> None:
    again = _TABLE + "630 621 0:60 /x /crew/home ro - tmpfs tmpfs rw\n"
    mount = mount_at(Path("/crew/home"), again)
    assert mount is not None
    assert mount.read_only


def test_a_path_without_a_mount_has_none() -> None:
    assert mount_at(Path("/crew"), _TABLE) is None
    assert mount_at(Path("/crew"), "nonsense\n\n") is None
