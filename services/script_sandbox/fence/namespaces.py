"""A room of its own for one worker: namespaces, and a root with nothing in it but the interpreter."""

from __future__ import annotations

import ctypes
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_NEW_NS, _NEW_UTS, _NEW_IPC, _NEW_USER, _NEW_NET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x40000000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = (
    1,
    2,
    4,
    32,
    4096,
    16384,
    1 << 18,
)
_MNT_DETACH = 2
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_ROOT = "/tmp"  # noqa: S108 - covered by a file system of its own, in a namespace of its own

_libc = ctypes.CDLL(None, use_errno=True)


def enter_namespaces(files: Sequence[str]) -> None:
    """Leave the machine: no network interface, no other user, and a read-only root holding `files`.

    Processes stay numbered as outside; that the worker can neither see nor signal them is the
    system-call filter's and Landlock's doing.

    Raises:
        OSError: The kernel or its settings do not allow it.
    """
    user, group = os.getuid(), os.getgid()
    _check(_libc.unshare(_NEW_USER | _NEW_NS | _NEW_NET | _NEW_IPC | _NEW_UTS))
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user} {user} 1")
    _write("/proc/self/gid_map", f"{group} {group} 1")
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE)
    _mount("none", _ROOT, "tmpfs", _MS_NOSUID | _MS_NODEV, "size=64k,mode=0555")
    for path in files:
        _bind(path)
    _mount(None, _ROOT, None, _MS_REMOUNT | _MS_RDONLY | _MS_NOSUID | _MS_NODEV)
    os.chdir(_ROOT)
    _check(_libc.syscall(ctypes.c_long(_PIVOT_ROOT[os.uname().machine]), b".", b"."))
    _check(_libc.umount2(b".", _MNT_DETACH))
    os.chdir("/")


def _bind(path: str) -> None:
    """Show one file of the machine under the same name, read-only."""
    inside = _ROOT + path
    os.makedirs(os.path.dirname(inside), exist_ok=True)
    os.close(os.open(inside, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o444))
    _mount(path, inside, None, _MS_BIND)
    _mount(None, inside, None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _MS_NOSUID | _MS_NODEV)


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    packed = [None if text is None else text.encode() for text in (source, target, kind, data)]
    _check(_libc.mount(packed[0], packed[1], packed[2], ctypes.c_ulong(flags), packed[3]))


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def _check(result: int) -> None:
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
