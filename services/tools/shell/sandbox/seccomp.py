"""The system-call filter of a sandboxed command, as classic BPF.

What it is for: no sockets beyond those the policy names, no way round Landlock's port rules, no
kernel interface that the sandbox has no answer to, and, where processes outside are visible, no
call that acts on them and that Landlock does not judge.
"""

from __future__ import annotations

import errno
import struct
from dataclasses import dataclass

from services.tools.shell.sandbox import syscalls

_LOAD = 0x20
_JUMP_EQUAL = 0x15
_JUMP_AT_LEAST = 0x35
_JUMP_ANY_BIT = 0x45
_AND = 0x54
_RETURN = 0x06

_ALLOW = 0x7FFF0000
_KILL_PROCESS = 0x80000000
_ERRNO = 0x00050000

_X32_BIT = 0x40000000

_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_SOCK_STREAM, _SOCK_DGRAM, _SOCK_SEQPACKET = 1, 2, 5
_SOCK_TYPE_MASK = 0xF
_STREAM_PROTOCOLS = (0, 6)
# UDP and the two kinds of ICMP echo.
_DATAGRAM_PROTOCOLS = (0, 17, 1, 58)
_NETLINK_ROUTE = 0
_MSG_FASTOPEN = 0x20000000
_IPPROTO_TCP, _TCP_ULP = 6, 31
_NEW_NAMESPACES = 0x20000 | 0x2000000 | 0x4000000 | 0x8000000 | 0x10000000 | 0x20000000 | 0x40000000
# Pushing characters into a terminal.
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_PRIO_PROCESS, _IOPRIO_WHO_PROCESS = 0, 1

# TLS-294, TLS-306: interfaces that can undo the sandbox or that it cannot see into.
_ALWAYS_REFUSED = (
    *("io_uring_setup", "io_uring_enter", "io_uring_register"),
    *("unshare", "setns", "chroot", "pivot_root", "mount", "umount2", "move_mount", "open_tree"),
    *("open_tree_attr", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr"),
    *("ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_getfd"),
    *("perf_event_open", "bpf", "userfaultfd", "fanotify_init", "open_by_handle_at", "lookup_dcookie"),
    *("init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot"),
    *("swapon", "swapoff", "acct", "quotactl", "quotactl_fd", "syslog", "vhangup", "uselib"),
    *("add_key", "request_key", "keyctl"),
    *("settimeofday", "clock_settime", "adjtimex", "clock_adjtime", "sethostname", "setdomainname"),
    *("iopl", "ioperm", "modify_ldt", "migrate_pages", "move_pages"),
)
# Shared by all processes of the user and judged by nobody where there is no namespace of our own.
_SHARED_MEMORY = (
    *("shmget", "shmat", "shmctl", "semget", "semop", "semtimedop", "semctl"),
    *("msgget", "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink"),
)
# TLS-305: changes of files that Landlock does not judge and that few programs need.
_OWNERS = ("chown", "fchown", "lchown", "fchownat")
_ATTRIBUTES = (
    *("setxattr", "lsetxattr", "fsetxattr", "setxattrat"),
    *("removexattr", "lremovexattr", "fremovexattr", "removexattrat"),
)
# Calls whose first argument is a process, 0 being the caller.
_ON_A_PROCESS = ("prlimit64", "sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr")


@dataclass(frozen=True, slots=True)
class FilterRules:
    """What a filter has to hold.

    Attributes:
        network: Whether IPv4 and IPv6 sockets may be made.
        own_namespaces: Whether the command sees processes, IPC objects and files through namespaces
            of its own; without them the filter refuses more.
    """

    network: bool
    own_namespaces: bool


class _Program:
    def __init__(self, machine: str) -> None:
        self._machine = machine
        self._instructions: list[tuple[int, int, int, int]] = []

    def add(self, code: int, value: int, if_true: int = 0, if_false: int = 0) -> None:
        self._instructions.append((code, if_true, if_false, value & 0xFFFFFFFF))

    def refuse(self, names: tuple[str, ...], code: int = errno.EPERM) -> None:
        for name in names:
            self.on_call(name, [(_RETURN, 0, 0, _ERRNO | code)])

    def on_call(self, name: str, body: list[tuple[int, int, int, int]]) -> None:
        """Run `body`, which has to return, when the call is `name`."""
        number = syscalls.number(name, self._machine)
        if number is None:
            return
        self.add(_JUMP_EQUAL, number, 0, len(body))
        self._instructions.extend((code, yes, no, value & 0xFFFFFFFF) for code, yes, no, value in body)

    def packed(self) -> bytes:
        return b"".join(struct.pack("=HBBI", *instruction) for instruction in self._instructions)


def build_filter(rules: FilterRules, machine: str) -> bytes:
    """Assemble the filter for an architecture.

    A call of a foreign ABI (32-bit, x32) ends the process; everything else refused is an error the
    program can see.

    Raises:
        KeyError: The architecture has no table.
    """
    architecture, _ = syscalls.ARCHITECTURES[machine]
    program = _Program(machine)
    program.add(_LOAD, 4)
    program.add(_JUMP_EQUAL, architecture, 1, 0)
    program.add(_RETURN, _KILL_PROCESS)
    program.add(_LOAD, 0)
    if machine == "x86_64":
        program.add(_JUMP_AT_LEAST, _X32_BIT, 0, 1)
        program.add(_RETURN, _KILL_PROCESS)

    program.refuse(_ALWAYS_REFUSED)
    # Its flags lie in memory, where a filter cannot look; C libraries fall back to `clone`.
    program.refuse(("clone3",), errno.ENOSYS)
    program.on_call("clone", _refuse_bits(0, _NEW_NAMESPACES))
    program.on_call("ioctl", _refuse_values(1, (_TIOCSTI, _TIOCLINUX)))
    _add_socket_rules(program, network=rules.network)
    if not rules.own_namespaces:
        _add_outsider_rules(program)
    program.add(_RETURN, _ALLOW)
    return program.packed()


def _add_socket_rules(program: _Program, *, network: bool) -> None:
    # A pair of datagram sockets can still be sent from to any path; stream pairs are bound to each
    # other.
    program.on_call(
        "socketpair",
        [
            *_unless_argument(0, (_AF_UNIX,)),
            *_unless_argument(1, (_SOCK_STREAM, _SOCK_SEQPACKET), mask=_SOCK_TYPE_MASK),
            (_RETURN, 0, 0, _ALLOW),
        ],
    )
    if not network:
        program.refuse(("socket",))
        return
    program.on_call("socket", _network_sockets())
    # TLS-319: sends the SYN without the `connect` that Landlock judges.
    for name, flags in (("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3)):
        program.on_call(name, _refuse_bits(flags, _MSG_FASTOPEN))
    # A protocol laid over a TCP socket connects past the judgement too.
    program.on_call(
        "setsockopt",
        [
            _load(1),
            (_JUMP_EQUAL, 1, 0, _IPPROTO_TCP),
            (_RETURN, 0, 0, _ALLOW),
            _load(2),
            (_JUMP_EQUAL, 1, 0, _TCP_ULP),
            (_RETURN, 0, 0, _ALLOW),
            (_RETURN, 0, 0, _ERRNO | errno.ENOPROTOOPT),
        ],
    )


def _network_sockets() -> list[tuple[int, int, int, int]]:
    """TCP, UDP and echo over IPv4 and IPv6, and the list of interfaces; by name, not by exclusion.

    MPTCP, SMC and SCTP are other protocols of the same families and connect unjudged.
    """
    stream = [*_unless_argument(2, _STREAM_PROTOCOLS), (_RETURN, 0, 0, _ALLOW)]
    datagram = [*_unless_argument(2, _DATAGRAM_PROTOCOLS), (_RETURN, 0, 0, _ALLOW)]
    internet = [
        _load(1),
        (_AND, 0, 0, _SOCK_TYPE_MASK),
        (_JUMP_EQUAL, 0, len(stream), _SOCK_STREAM),
        *stream,
        (_JUMP_EQUAL, 0, len(datagram), _SOCK_DGRAM),
        *datagram,
        (_RETURN, 0, 0, _ERRNO | errno.EPERM),
    ]
    netlink = [*_unless_argument(2, (_NETLINK_ROUTE,)), (_RETURN, 0, 0, _ALLOW)]
    return [
        _load(0),
        (_JUMP_EQUAL, 0, len(netlink), _AF_NETLINK),
        *netlink,
        (_JUMP_EQUAL, 2, 0, _AF_INET),
        (_JUMP_EQUAL, 1, 0, _AF_INET6),
        (_RETURN, 0, 0, _ERRNO | errno.EPERM),
        *internet,
    ]


def _add_outsider_rules(program: _Program) -> None:
    program.refuse(_SHARED_MEMORY)
    program.refuse(_OWNERS)
    program.refuse(_ATTRIBUTES, errno.EOPNOTSUPP)
    for name in _ON_A_PROCESS:
        program.on_call(name, [*_unless_argument(0, (0,)), (_RETURN, 0, 0, _ALLOW)])
    for name, kind in (("setpriority", _PRIO_PROCESS), ("ioprio_set", _IOPRIO_WHO_PROCESS)):
        program.on_call(
            name, [*_unless_argument(0, (kind,)), *_unless_argument(1, (0,)), (_RETURN, 0, 0, _ALLOW)]
        )


def _load(argument: int) -> tuple[int, int, int, int]:
    """Load the low half of an argument; the kernel ignores the high half of all those judged here."""
    return (_LOAD, 0, 0, 16 + 8 * argument)


def _refuse_bits(argument: int, bits: int) -> list[tuple[int, int, int, int]]:
    return [
        _load(argument),
        (_JUMP_ANY_BIT, 0, 1, bits),
        (_RETURN, 0, 0, _ERRNO | errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _refuse_values(argument: int, values: tuple[int, ...]) -> list[tuple[int, int, int, int]]:
    refused = [(_JUMP_EQUAL, len(values) - place, 0, value) for place, value in enumerate(values)]
    return [_load(argument), *refused, (_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _ERRNO | errno.EPERM)]


def _unless_argument(
    argument: int, allowed: tuple[int, ...], *, mask: int | None = None
) -> list[tuple[int, int, int, int]]:
    """Go on after this block when the argument is one of `allowed`, else refuse the call."""
    checks = [(_JUMP_EQUAL, len(allowed) - place, 0, value) for place, value in enumerate(allowed)]
    return [
        _load(argument),
        *([(_AND, 0, 0, mask)] if mask is not None else []),
        *checks,
        (_RETURN, 0, 0, _ERRNO | errno.EPERM),
    ]
