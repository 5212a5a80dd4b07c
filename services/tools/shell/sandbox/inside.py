"""What the probe tries from within the sandbox. Its source is handed to an interpreter as text.

The first argument is a JSON object of the places to try; printed is a JSON list of the names of
everything that did not go as a sandbox has to make it go. It imports the standard library alone.
"""

import ctypes
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any

Attempts = dict[str, Callable[[], object]]
Places = dict[str, Any]


def main() -> None:
    """Try everything and print what failed to hold."""
    places: Places = json.loads(sys.argv[1])
    refused = _network_attempts(places) if places["network"] else _socket_attempts()
    refused |= _file_attempts(places) | _process_attempts(places)
    wrong = [name for name, attempt in refused.items() if _succeeds(attempt)]
    wrong += [name for name, attempt in _needed(places).items() if not _succeeds(attempt)]
    print(json.dumps(wrong))  # noqa: T201 - its answer


def _succeeds(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except (OSError, subprocess.SubprocessError):
        return False
    return True


def _socket_attempts() -> Attempts:
    return {
        "socket_inet": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM),
        "socket_udp": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
        "socket_inet6": lambda: socket.socket(socket.AF_INET6, socket.SOCK_STREAM),
        **_service_sockets(),
    }


def _service_sockets() -> Attempts:
    return {
        "socket_unix": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM),
        "socket_unix_datagram_pair": lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM),
        "socket_vsock": lambda: socket.socket(40, socket.SOCK_STREAM),
    }


def _network_attempts(places: Places) -> Attempts:
    return {
        "closed_port": lambda: socket.create_connection(("127.0.0.1", places["closed_port"]), 2),
        "socket_mptcp": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262),
        **_service_sockets(),
    }


def _file_attempts(places: Places) -> Attempts:
    outside, kept, hidden = places["outside"], places["outside_file"], places["hidden"]
    writable = places["writable"]
    return {
        "create_outside": lambda: open(os.path.join(outside, "new"), "w").close(),
        "append_outside": lambda: open(kept, "a").close(),
        "truncate_outside": lambda: os.truncate(kept, 0),
        "remove_outside": lambda: os.unlink(kept),
        "link_outside": lambda: os.link(kept, os.path.join(writable, "link")),
        "rename_outside": lambda: os.rename(os.path.join(writable, "mine"), os.path.join(outside, "mine")),
        "read_hidden": lambda: open(os.path.join(hidden, "key")).read(),
        "list_hidden": lambda: os.listdir(hidden),
        "create_hidden": lambda: open(os.path.join(hidden, "new"), "w").close(),
    }


def _process_attempts(places: Places) -> Attempts:
    service = places["service"]
    libc = ctypes.CDLL(None, use_errno=True)

    def call(*arguments: object) -> None:
        if libc.syscall(*arguments) == -1 and ctypes.get_errno() in (1, 3, 13, 38):
            raise OSError(ctypes.get_errno(), "refused")

    limit = ctypes.create_string_buffer(16)
    prlimit = {"x86_64": 302, "aarch64": 261}[os.uname().machine]
    unshare = {"x86_64": 272, "aarch64": 97}[os.uname().machine]
    return {
        "signal_service": lambda: os.kill(service, 0),
        "limit_of_service": lambda: call(prlimit, service, 7, None, limit),
        "environment_of_service": lambda: open(f"/proc/{service}/environ", "rb").read(),
        "user_namespace": lambda: call(unshare, 0x10000000),
        "io_uring": lambda: call(425, 1, None),
    }


def _needed(places: Places) -> Attempts:
    needed: Attempts = {
        "write_allowed": lambda: open(os.path.join(places["writable"], "written"), "w").close(),
        "write_temp": lambda: open(os.path.join(os.environ["TMPDIR"], "written"), "w").close(),
        "read_workspace": lambda: open(places["workspace_file"]).close(),
        "run_program": lambda: subprocess.run(["/bin/sh", "-c", "true"], check=True),
        "socket_pair": socket.socketpair,
    }
    if places["network"]:
        needed["open_port"] = lambda: socket.create_connection(("127.0.0.1", places["open_port"]), 5)
    return needed


main()
