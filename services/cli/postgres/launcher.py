"""Starts a program of Postgres so that it ends with its parent and never runs as root.

Run as a script by ``python -I -S``: it imports nothing of the project, changes this process and
becomes the program. As root the process first enters a user namespace of one id, in which it is
nobody; what it writes stays root's outside, and no account has to be made.
"""

import ctypes
import os
import signal
import sys

CLONE_NEWUSER = 0x10000000
PR_SET_PDEATHSIG = 1
NOBODY = 65534
CANNOT_UNSHARE = 71


def main() -> None:
    """``launcher.py <parent pid, or 0> <program> <arguments…>``."""
    parent, argv = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if os.geteuid() == 0:
            enter_namespace(libc)
        if parent:
            # After the namespace: a change of credentials clears it. SIGINT ends Postgres cleanly.
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGINT)
            if os.getppid() != parent:
                sys.exit(1)
    os.execv(argv[0], argv)


def enter_namespace(libc: ctypes.CDLL) -> None:
    """Become nobody in a namespace of our own, or exit with `CANNOT_UNSHARE`."""
    if libc.unshare(CLONE_NEWUSER) != 0:
        sys.exit(CANNOT_UNSHARE)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{NOBODY} 0 1"),
        ("gid_map", f"{NOBODY} 0 1"),
    ):
        descriptor = os.open(f"/proc/self/{name}", os.O_WRONLY)
        os.write(descriptor, text.encode())
        os.close(descriptor)


if __name__ == "__main__":
    main()
