"""Paths as text: what a model wrote, what it means in a workspace, and what is below what.

Everything here is about strings. Where a path really points is for whoever opens it to find out.
"""

from __future__ import annotations

import posixpath
import unicodedata
from collections.abc import Iterable

from services.common.toolhost.contract import WorkspaceGrant
from services.tools.workspace.faults import WorkspaceFault

PATH_BYTES = 4095
NAME_BYTES = 255


def relative_path(grant: WorkspaceGrant, path: str) -> str:
    """What `path` means in the workspace: relative to its root, normalised; "" is the root.

    Raises:
        WorkspaceFault: ``bad_path`` for control characters, half surrogates or an empty path,
            ``outside`` for one that leaves the workspace, ``name_too_long``.
    """
    if any(unicodedata.category(char) in {"Cc", "Cs"} for char in path) or not path.strip():
        raise WorkspaceFault("bad_path", path)
    normal = _inside(posixpath.normpath(grant.root), path)
    encoded = normal.encode()
    if len(encoded) > PATH_BYTES or any(len(name) > NAME_BYTES for name in encoded.split(b"/")):
        raise WorkspaceFault("name_too_long", path)
    return normal


def _inside(root: str, path: str) -> str:
    normal = posixpath.normpath(posixpath.join(root, path))
    # Two leading slashes are a root of their own to POSIX, and nothing here means that.
    normal = "/" + normal.lstrip("/")
    if normal == root:
        return ""
    if not is_below(normal, root):
        raise WorkspaceFault("outside", path)
    return normal[len(root) :].lstrip("/")


def is_below(path: str, folder: str) -> bool:
    """Whether `path` is `folder` or lies below it, on whole components (TLS-196)."""
    if folder in {"", "/"}:
        return True
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def alike(path: str) -> str:
    """`path` without differences that some file systems do not make: letter case and composition."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def is_below_any(path: str, folders: Iterable[str]) -> bool:
    """Whether `path` lies in one of `folders`, in any spelling (TLS-204)."""
    spelled = alike(path)
    return any(is_below(spelled, alike(folder)) for folder in folders)


def check_writable(grant: WorkspaceGrant, shown: str, *places: str) -> None:
    """Check every one of `places` (relative paths) against the grant's write paths (TLS-208 to 212).

    Raises:
        WorkspaceFault: ``not_writable_here``, naming the paths that are allowed.
    """
    if not grant.write_paths:
        return
    allowed = [entry for entry in map(posixpath.normpath, grant.write_paths) if _is_entry(entry)]
    for place in places:
        if not any(is_below(place, "" if entry == "." else entry) for entry in allowed):
            raise WorkspaceFault("not_writable_here", shown, ", ".join(allowed))


def _is_entry(entry: str) -> bool:
    """An entry that leaves the workspace allows nothing; the start refuses it (TLS-213)."""
    return not entry.startswith("/") and entry != ".." and not entry.startswith("../")
