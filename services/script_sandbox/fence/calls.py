"""The system calls that an interpreter needs, and no others (SCR-251).

The list is of what is allowed: whatever a kernel adds later is refused without this file knowing its
name. Refused calls are errors, not death, since C libraries try newer calls and fall back.
"""

from __future__ import annotations

import errno

from services.common.confinement.bpf import (
    ALLOW,
    ERRNO,
    RETURN,
    FilterProgram,
    need_bits,
    refuse_bits,
    unless_argument,
)

_MEMORY = ("mmap", "munmap", "mremap", "mprotect", "madvise", "brk")
_THREADS = (
    "futex",
    "set_robust_list",
    "rseq",
    "set_tid_address",
    "gettid",
    "getpid",
    "sched_yield",
    "membarrier",
)
_SIGNALS = ("rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "restart_syscall")
_TIME = ("clock_gettime", "gettimeofday", "nanosleep", "clock_nanosleep", "getrandom")
# On descriptors it was given, and on the files it is loaded from.
_STREAMS = ("read", "write", "readv", "writev", "pread64", "lseek", "close", "poll", "ppoll")
_LOOKING = ("fstat", "newfstatat", "statx", "access", "faccessat", "faccessat2", "sched_getaffinity")
_START = ("execve", "arch_prctl", "exit", "exit_group")

_WRITING = 0o1 | 0o2 | 0o100 | 0o1000 | 0o2000 | 0o20000000
_CLONE_THREAD = 0x10000
_PR_SET_NAME = 15


def interpreter_filter(machine: str) -> bytes:
    """Assemble the filter for an architecture.

    Raises:
        KeyError: The architecture has no table.
    """
    program = FilterProgram(machine)
    program.allow((*_MEMORY, *_THREADS, *_SIGNALS, *_TIME, *_STREAMS, *_LOOKING, *_START))
    program.on_call("openat", refuse_bits(2, _WRITING))
    # Threads of itself; its flags lie in memory for `clone3`, so C libraries are sent back to `clone`.
    program.on_call("clone", need_bits(0, _CLONE_THREAD))
    program.refuse(("clone3",), errno.ENOSYS)
    own = [*unless_argument(0, (0,)), (RETURN, 0, 0, ALLOW)]
    program.on_call("prlimit64", own)
    program.on_call("prctl", [*unless_argument(0, (_PR_SET_NAME,)), (RETURN, 0, 0, ALLOW)])
    program.add(RETURN, ERRNO | errno.EPERM)
    return program.packed()
