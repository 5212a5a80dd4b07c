"""System calls that the standard library does not offer, for the process that makes them.

Nothing here can be undone: a capability, a right to gain privileges or an access given up stays so
for the process and all it starts.
"""

from __future__ import annotations

import ctypes
import os
import struct

_libc = ctypes.CDLL(None, use_errno=True)

_PR_SET_PDEATHSIG = 1
_SIGKILL = 9
_PR_SET_NO_NEW_PRIVS = 38
_PR_GET_NO_NEW_PRIVS = 39
_PR_SET_SECCOMP = 22
_PR_CAPBSET_READ = 23
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_SECCOMP_MODE_FILTER = 2
_CAPABILITY_VERSION_3 = 0x20080522
_HIGHEST_CAPABILITY = 63
CAP_SETFCAP = 31

_CAPSET = {"x86_64": 126, "aarch64": 91}


def machine() -> str:
    """The architecture, in the kernel's name for it."""
    return os.uname().machine


def syscall(number: int, *arguments: int | ctypes.c_void_p | bytes | None) -> int:
    """Make a system call by number.

    Raises:
        OSError: The kernel refused it.
    """
    result = int(_libc.syscall(ctypes.c_long(number), *(_argument(value) for value in arguments)))
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def _argument(value: int | ctypes.c_void_p | bytes | None) -> object:
    return ctypes.c_long(value) if isinstance(value, int) else value


def _prctl(option: int, *arguments: int | ctypes.c_void_p) -> int:
    padded = [*arguments, *(0 for _ in range(4 - len(arguments)))]
    result = int(_libc.prctl(ctypes.c_int(option), *(_argument(value) for value in padded)))
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def become_subreaper() -> None:
    """Become the parent of every orphan among this process's descendants."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Be killed when the thread that started this process ends, also across `exec`."""
    _prctl(_PR_SET_PDEATHSIG, _SIGKILL)


def give_up_new_privileges() -> None:
    """No program started from here gains rights by a setuid bit or file capabilities."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    if _prctl(_PR_GET_NO_NEW_PRIVS) != 1:
        raise OSError("the kernel did not give up new privileges")


def drop_capabilities(*, keep: tuple[int, ...] = ()) -> None:
    """Give up every capability, also for programs this user's id would give them to.

    Args:
        keep: Capabilities that this process, and programs it starts as root, may still have.

    Raises:
        OSError: The user is root and the bounding set could not be emptied.
    """
    for capability in range(_HIGHEST_CAPABILITY + 1):
        try:
            if not _prctl(_PR_CAPBSET_READ, capability):
                continue
        except OSError:
            break
        if capability in keep:
            continue
        try:
            _prctl(_PR_CAPBSET_DROP, capability)
        except OSError:
            # Without privileges to give up, the set matters to root alone: `exec` fills from it.
            if os.geteuid() == 0:
                raise
            break
    try:
        _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    except OSError:
        if os.geteuid() == 0:
            raise
    header = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
    kept = sum(1 << capability for capability in keep)
    low, high = kept & 0xFFFFFFFF, kept >> 32
    syscall(_CAPSET[machine()], header, struct.pack("6I", low, low, 0, high, high, 0))


def install_filter(program: bytes) -> None:
    """Install a seccomp program for this process and everything it starts.

    Args:
        program: Instructions of classic BPF, eight bytes each.
    """
    buffer = ctypes.create_string_buffer(program, len(program))
    header = ctypes.create_string_buffer(
        struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer)), struct.calcsize("HxxxxxxP")
    )
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.c_void_p(ctypes.addressof(header)))
