"""Where a path really points, and whether a call may go there."""

from __future__ import annotations

import errno
import os
import posixpath
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from services.common.toolhost.contract import WorkspaceGrant
from services.tools.workspace.disk.beneath import Swapped, open_directory
from services.tools.workspace.faults import FaultKind, WorkspaceFault
from services.tools.workspace.paths import check_writable, is_below, is_below_any, relative_path

_FAULTS: dict[int, FaultKind] = {
    errno.ENOENT: "missing",
    errno.ENOTDIR: "not_directory",
    errno.EISDIR: "is_directory",
    errno.ELOOP: "link_loop",
    errno.EACCES: "denied",
    errno.EPERM: "denied",
    errno.EROFS: "denied",
    errno.ENAMETOOLONG: "name_too_long",
    errno.ENOSPC: "no_space",
    errno.EDQUOT: "no_space",
    errno.EFBIG: "no_space",
    errno.ENXIO: "special",
    errno.ENODEV: "special",
}


@dataclass(frozen=True, slots=True)
class Place:
    """A path with all links resolved, judged and inside the workspace."""

    root: str
    # Relative to `root`; "" is the root.
    path: str
    # As the model wrote it.
    shown: str

    @property
    def parent(self) -> str:
        """The folder it lies in."""
        return posixpath.dirname(self.path)

    @property
    def name(self) -> str:
        """Its last name."""
        return posixpath.basename(self.path)

    @property
    def absolute(self) -> str:
        """The whole path."""
        return posixpath.join(self.root, self.path)


class ClosedPlaces:
    """The private paths of a grant, by name in any spelling and by identity (TLS-202 to 204).

    Args:
        grant: Of the call.
    """

    def __init__(self, grant: WorkspaceGrant) -> None:
        self._names = {*grant.private_paths, *map(os.path.realpath, grant.private_paths)}
        self._identities = {
            identity for path in grant.private_paths if (identity := _identity_of(path)) is not None
        }

    def holds(self, absolute: str) -> bool:
        """Whether a resolved path is one of them or lies below one."""
        return bool(self._names) and is_below_any(absolute, self._names)

    def is_one(self, status: os.stat_result) -> bool:
        """Whether this is one of them under whatever name, such as a bind mount's."""
        return (status.st_dev, status.st_ino) in self._identities

    def holds_ancestor(self, root: str, path: str) -> bool:
        """Whether a folder between `root` and `path` (included) is one of them."""
        if not self._identities:
            return False
        here = root
        for name in ["", *path.split("/")]:
            here = posixpath.join(here, name) if name else here
            if _identity_of(here) in self._identities:
                return True
        return False


def locate(grant: WorkspaceGrant, path: str, *, writing: bool = False) -> Place:
    """Find out where `path` points and judge it. Opens nothing.

    Args:
        grant: What the call may touch.
        path: As the model wrote it: relative to the workspace, or absolute inside it.
        writing: Hold it against the grant's write paths too, as text and as what it points to.

    Raises:
        WorkspaceFault: ``bad_path``, ``outside``, ``private`` or ``not_writable_here``.
    """
    if not posixpath.isabs(grant.root):
        raise WorkspaceFault("outside", path)
    root = os.path.realpath(grant.root)
    try:
        asked = relative_path(grant, path)
    except WorkspaceFault as fault:
        # The root's own resolved name is inside it too.
        if fault.kind != "outside" or root == grant.root:
            raise
        asked = relative_path(replace(grant, root=root), path)
    real = _resolved(posixpath.join(root, asked), path)
    if not is_below(real, root):
        raise WorkspaceFault("outside", path)
    place = Place(root, real[len(root) :].lstrip("/"), path)
    closed = ClosedPlaces(grant)
    if closed.holds(real) or closed.holds(posixpath.join(root, asked)):
        raise WorkspaceFault("private", path)
    if closed.holds_ancestor(root, place.path):
        raise WorkspaceFault("private", path)
    if writing:
        check_writable(grant, path, asked, place.path)
    return place


@contextmanager
def opened_root(place: Place) -> Iterator[int]:
    """The workspace's root, open while in use; faults of what is done with it are put in terms of `place`."""
    with as_faults(place.shown):
        root = open_directory(place.root)
        try:
            yield root
        finally:
            os.close(root)


@contextmanager
def as_faults(shown: str) -> Iterator[None]:
    """Turn errors of the system into faults about the path `shown`."""
    try:
        yield
    except Swapped as error:
        raise WorkspaceFault("swapped", shown) from error
    except OSError as error:
        known = _FAULTS.get(error.errno or 0)
        if known is None:
            raise
        raise WorkspaceFault(known, shown) from error


def _resolved(path: str, shown: str) -> str:
    """`path` with all links followed, as far as it exists."""
    try:
        return os.path.realpath(path, strict=True)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise WorkspaceFault("link_loop", shown) from None
        return os.path.realpath(path)


def _identity_of(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino
