"""What the probe tries from behind the fence: everything an interpreter taken over would try first."""

import contextlib
import ctypes
import json
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable

_libc = ctypes.CDLL(None, use_errno=True)
_CALLS = {
    "x86_64": {
        "unshare": 272,
        "ptrace": 101,
        "keyctl": 250,
        "bpf": 321,
        "mount": 165,
        "prlimit64": 302,
        "memfd": 319,
    },
    "aarch64": {
        "unshare": 97,
        "ptrace": 117,
        "keyctl": 219,
        "bpf": 280,
        "mount": 40,
        "prlimit64": 261,
        "memfd": 279,
    },
}
_IO_URING_SETUP = 425
# Asked before the fence, which refuses the question.
_MACHINE = os.uname().machine


def try_everything(outsider: int) -> None:
    """Try all of it and print the names of what succeeded, as a JSON list.

    Args:
        outsider: A process of the same user outside the fence.
    """
    through = [name for name, attempt in _attempts(outsider).items() if _succeeds(attempt)]
    _try_a_program(through)
    os.write(sys.stdout.fileno(), json.dumps(through).encode())
    os._exit(0)


def _try_a_program(through: list[str]) -> None:
    """Last, since a program that runs takes this process: it then tells what got through."""
    told = json.dumps([*through, "run_shell"])
    with contextlib.suppress(OSError):
        os.execve("/bin/sh", ["sh", "-c", 'printf %s "$0"', told], {})


def _succeeds(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except (OSError, ValueError):
        return False
    return True


def _attempts(outsider: int) -> dict[str, Callable[[], object]]:
    numbers = _CALLS[_MACHINE]

    def call(name: str, *arguments: object) -> None:
        number = _IO_URING_SETUP if name == "io_uring" else numbers[name]
        if _libc.syscall(ctypes.c_long(number), *arguments) == -1:
            raise OSError(ctypes.get_errno(), "refused")

    return {
        "socket_inet": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM),
        "socket_unix": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM),
        "socket_pair": socket.socketpair,
        "read_passwd": lambda: os.open("/etc/passwd", os.O_RDONLY),
        "read_environment": lambda: os.open(f"/proc/{outsider}/environ", os.O_RDONLY),
        "list_root": lambda: os.listdir("/"),
        "create_file": lambda: os.open("/tmp/escaped", os.O_CREAT | os.O_WRONLY),  # noqa: S108 - must fail
        "memory_file": lambda: call("memfd", b"x", 0),
        "fork": _fork,
        "signal_outsider": lambda: os.kill(outsider, 0),
        "limit_outsider": lambda: call("prlimit64", outsider, 7, None, ctypes.create_string_buffer(16)),
        "namespace": lambda: call("unshare", 0x10000000),
        "ptrace": lambda: call("ptrace", 16, outsider, None, None),
        "keyring": lambda: call("keyctl", 0, -3, 1),
        "bpf": lambda: call("bpf", 0, None, 0),
        "mount": lambda: call("mount", b"none", b"/", b"tmpfs", 0, None),
        "io_uring": lambda: call("io_uring", 1, ctypes.create_string_buffer(120)),
        "raise_limit": _raise_limit,
    }


def _fork() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.kill(child, signal.SIGKILL)


def _raise_limit() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, 1))
