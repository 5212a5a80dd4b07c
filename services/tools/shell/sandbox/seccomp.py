"""The system-call filter of a sandboxed command, as classic BPF.

What it is for: no sockets beyond those the policy names, no way round Landlock's port rules, no
kernel interface that the sandbox has no answer to, and, where processes outside are visible, no
call that acts on them and that Landlock does not judge.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass

from services.common.confinement.bpf import (
    ALLOW,
    AND,
    ERRNO,
    JUMP_EQUAL,
    RETURN,
    FilterProgram,
    Instruction,
    load_argument,
    refuse_bits,
    refuse_values,
    unless_argument,
)

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


def build_filter(rules: FilterRules, machine: str) -> bytes:
    """Assemble the filter for an architecture.

    A call of a foreign ABI (32-bit, x32) ends the process; everything else refused is an error the
    program can see.

    Raises:
        KeyError: The architecture has no table.
    """
    program = FilterProgram(machine)
    program.refuse(_ALWAYS_REFUSED)
    # Its flags lie in memory, where a filter cannot look; C libraries fall back to `clone`.
    program.refuse(("clone3",), errno.ENOSYS)
    program.on_call("clone", refuse_bits(0, _NEW_NAMESPACES))
    program.on_call("ioctl", refuse_values(1, (_TIOCSTI, _TIOCLINUX)))
    _add_socket_rules(program, network=rules.network)
    if not rules.own_namespaces:
        _add_outsider_rules(program)
    program.add(RETURN, ALLOW)
    return program.packed()


def _add_socket_rules(program: FilterProgram, *, network: bool) -> None:
    # A pair of datagram sockets can still be sent from to any path; stream pairs are bound to each
    # other.
    program.on_call(
        "socketpair",
        [
            *unless_argument(0, (_AF_UNIX,)),
            *unless_argument(1, (_SOCK_STREAM, _SOCK_SEQPACKET), mask=_SOCK_TYPE_MASK),
            (RETURN, 0, 0, ALLOW),
        ],
    )
    if not network:
        program.refuse(("socket",))
        return
    program.on_call("socket", _network_sockets())
    # TLS-319: sends the SYN without the `connect` that Landlock judges.
    for name, flags in (("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3)):
        program.on_call(name, refuse_bits(flags, _MSG_FASTOPEN))
    # A protocol laid over a TCP socket connects past the judgement too.
    program.on_call(
        "setsockopt",
        [
            load_argument(1),
            (JUMP_EQUAL, 1, 0, _IPPROTO_TCP),
            (RETURN, 0, 0, ALLOW),
            load_argument(2),
            (JUMP_EQUAL, 1, 0, _TCP_ULP),
            (RETURN, 0, 0, ALLOW),
            (RETURN, 0, 0, ERRNO | errno.ENOPROTOOPT),
        ],
    )


def _network_sockets() -> list[Instruction]:
    """TCP, UDP and echo over IPv4 and IPv6, and the list of interfaces; by name, not by exclusion.

    MPTCP, SMC and SCTP are other protocols of the same families and connect unjudged.
    """
    stream = [*unless_argument(2, _STREAM_PROTOCOLS), (RETURN, 0, 0, ALLOW)]
    datagram = [*unless_argument(2, _DATAGRAM_PROTOCOLS), (RETURN, 0, 0, ALLOW)]
    internet = [
        load_argument(1),
        (AND, 0, 0, _SOCK_TYPE_MASK),
        (JUMP_EQUAL, 0, len(stream), _SOCK_STREAM),
        *stream,
        (JUMP_EQUAL, 0, len(datagram), _SOCK_DGRAM),
        *datagram,
        (RETURN, 0, 0, ERRNO | errno.EPERM),
    ]
    netlink = [*unless_argument(2, (_NETLINK_ROUTE,)), (RETURN, 0, 0, ALLOW)]
    return [
        load_argument(0),
        (JUMP_EQUAL, 0, len(netlink), _AF_NETLINK),
        *netlink,
        (JUMP_EQUAL, 2, 0, _AF_INET),
        (JUMP_EQUAL, 1, 0, _AF_INET6),
        (RETURN, 0, 0, ERRNO | errno.EPERM),
        *internet,
    ]


def _add_outsider_rules(program: FilterProgram) -> None:
    program.refuse(_SHARED_MEMORY)
    program.refuse(_OWNERS)
    program.refuse(_ATTRIBUTES, errno.EOPNOTSUPP)
    for name in _ON_A_PROCESS:
        program.on_call(name, [*unless_argument(0, (0,)), (RETURN, 0, 0, ALLOW)])
    for name, kind in (("setpriority", _PRIO_PROCESS), ("ioprio_set", _IOPRIO_WHO_PROCESS)):
        program.on_call(
            name, [*unless_argument(0, (kind,)), *unless_argument(1, (0,)), (RETURN, 0, 0, ALLOW)]
        )
