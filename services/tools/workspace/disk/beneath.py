"""Opening what lies beneath a directory, without ever following a link.

The path comes with all links resolved and has been judged in that form; it is opened as it stands.
Where a part of it has been swapped for a link since, opening fails: the path that was checked is
the path that is opened (TLS-199).
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from functools import cache

_DIRECTORY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
# The same number on every architecture (it came after they were unified).
_SYS_OPENAT2 = 437
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_NO_SYMLINKS = 0x04
_RESOLVE_BENEATH = 0x08
_RESOLVE = _RESOLVE_BENEATH | _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_MAGICLINKS
# A rename elsewhere in the tree makes the kernel give up; trying again is what it asks for.
_ATTEMPTS = 16


class Swapped(OSError):
    """A part of the path is a link, although the judged path held none."""


def open_directory(path: str) -> int:
    """Open a directory that others are opened beneath.

    Raises:
        OSError: It does not exist, or is not a directory.
    """
    return os.open(path, _DIRECTORY)


def open_beneath(root: int, path: str, flags: int) -> int:
    """Open `path`, relative and free of links and ``..``, beneath the directory `root`.

    Args:
        root: File descriptor of a directory.
        path: Relative; "" is the directory itself.
        flags: Of open(2); the final name is never followed either.

    Raises:
        Swapped: A part of the path is a link.
        OSError: As open(2).
    """
    flags |= os.O_CLOEXEC | os.O_NOFOLLOW
    if _openat2 is not None:
        try:
            return _by_openat2(root, path or ".", flags)
        except OSError as error:
            # Old kernels, and sandboxes that answer for kernels they do not know.
            if error.errno not in {errno.ENOSYS, errno.EPERM}:
                raise
    return step_by_step(root, path, flags)


def step_by_step(root: int, path: str, flags: int) -> int:
    """As `open_beneath`, one name at a time; for systems without openat2."""
    names = path.split("/") if path else []
    if ".." in names:
        raise Swapped(errno.EXDEV, os.strerror(errno.EXDEV), path)
    here = os.open(".", _DIRECTORY, dir_fd=root)
    try:
        for name in names[:-1]:
            below = _open_name(here, name, _DIRECTORY | os.O_NOFOLLOW)
            os.close(here)
            here = below
        return _open_name(here, names[-1] if names else ".", flags | os.O_CLOEXEC | os.O_NOFOLLOW)
    finally:
        os.close(here)


def _open_name(directory: int, name: str, flags: int) -> int:
    try:
        return os.open(name, flags, dir_fd=directory)
    except OSError as error:
        # A link met with O_DIRECTORY and O_NOFOLLOW is ELOOP on some systems, ENOTDIR on others.
        if error.errno in {errno.ELOOP, errno.EMLINK} or _is_link(directory, name):
            raise Swapped(error.errno, error.strerror, name) from None
        raise


def _is_link(directory: int, name: str) -> bool:
    try:
        os.readlink(name, dir_fd=directory)
    except OSError:
        return False
    return True


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


@cache
def _system_call() -> ctypes._NamedFuncPointer:
    return ctypes.CDLL(None, use_errno=True).syscall


_openat2 = _SYS_OPENAT2 if sys.platform == "linux" else None


def _by_openat2(root: int, path: str, flags: int) -> int:
    how = _OpenHow(flags=flags, mode=0, resolve=_RESOLVE)
    name = os.fsencode(path)
    for _ in range(_ATTEMPTS):
        descriptor: int = _system_call()(
            ctypes.c_long(_SYS_OPENAT2),
            ctypes.c_int(root),
            ctypes.c_char_p(name),
            ctypes.byref(how),
            ctypes.c_size_t(ctypes.sizeof(how)),
        )
        if descriptor >= 0:
            return descriptor
        number = ctypes.get_errno()
        if number in {errno.EAGAIN, errno.EINTR}:
            continue
        if number in {errno.ELOOP, errno.EXDEV}:
            raise Swapped(number, os.strerror(number), path)
        raise OSError(number, os.strerror(number), path)
    raise Swapped(errno.EAGAIN, os.strerror(errno.EAGAIN), path)
