"""The system-call filter, evaluated instruction by instruction for both architectures.

The escape tests prove it on the machine they run on; this proves what it says on the other one.
"""

from __future__ import annotations

import errno
import struct

import pytest

from services.common.confinement import syscalls
from services.tools.shell.sandbox.seccomp import FilterRules, build_filter

MACHINES = tuple(syscalls.ARCHITECTURES)
ALLOWED, KILLED, REFUSED = 0x7FFF0000, 0x80000000, 0x00050000
MOST_INSTRUCTIONS = 4096


def verdict(program: bytes, architecture: int, number: int, *arguments: int) -> int:
    """What the kernel would do: the returned value of the program."""
    data = struct.pack("=IIQ6Q", number, architecture, 0, *(*arguments, *[0] * (6 - len(arguments))))
    instructions = list(struct.iter_unpack("=HBBI", program))
    accumulator = at = 0
    while True:
        code, yes, no, value = instructions[at]
        at += 1
        match code:
            case 0x20:
                (accumulator,) = struct.unpack_from("=I", data, value)
            case 0x54:
                accumulator &= value
            case 0x15:
                at += yes if accumulator == value else no
            case 0x35:
                at += yes if accumulator >= value else no
            case 0x45:
                at += yes if accumulator & value else no
            case 0x06:
                return value
            case _:
                raise AssertionError(f"unknown instruction {code:#x}")


class Filter:
    def __init__(self, machine: str, *, network: bool, own_namespaces: bool) -> None:
        self.machine = machine
        self.architecture = syscalls.ARCHITECTURES[machine][0]
        self.program = build_filter(FilterRules(network, own_namespaces), machine)

    def of(self, name: str, *arguments: int) -> int:
        number = syscalls.number(name, self.machine)
        if number is None:
            pytest.skip(f"{self.machine} has no {name}")
        return verdict(self.program, self.architecture, number, *arguments)


@pytest.fixture(params=MACHINES)
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.spec("TLS-294")
def test_a_foreign_abi_ends_the_process(machine: str) -> None:
    made = Filter(machine, network=True, own_namespaces=True)
    assert verdict(made.program, 0x40000003, 20) == KILLED
    if machine == "x86_64":
        assert verdict(made.program, made.architecture, 0x40000000 + 39) == KILLED
    getpid = {"x86_64": 39, "aarch64": 172}[machine]
    assert verdict(made.program, made.architecture, getpid) == ALLOWED
    assert len(made.program) // 8 < MOST_INSTRUCTIONS


@pytest.mark.spec("TLS-293", "TLS-294", "TLS-306")
@pytest.mark.parametrize("network", [False, True])
@pytest.mark.parametrize(
    "name",
    [
        "io_uring_setup",
        "unshare",
        "setns",
        "mount",
        "chroot",
        "ptrace",
        "bpf",
        "init_module",
        "keyctl",
        "pidfd_getfd",
    ],
)
def test_dangerous_interfaces_are_refused(machine: str, network: bool, name: str) -> None:
    made = Filter(machine, network=network, own_namespaces=True)
    assert made.of(name) == REFUSED | errno.EPERM


def test_namespaces_cannot_be_made_by_clone_and_threads_can(machine: str) -> None:
    made = Filter(machine, network=False, own_namespaces=True)
    assert made.of("clone", 0x10000000 | 17) == REFUSED | errno.EPERM
    assert made.of("clone", 0x3D0F00) == ALLOWED
    assert made.of("clone3") == REFUSED | errno.ENOSYS


@pytest.mark.spec("TLS-289", "TLS-293")
def test_without_network_no_family_is_left_and_pairs_are(machine: str) -> None:
    made = Filter(machine, network=False, own_namespaces=True)
    assert all(made.of("socket", family, kind) != ALLOWED for family in range(64) for kind in range(8))
    assert made.of("socketpair", 1, 1 | 0x80000) == ALLOWED
    assert made.of("socketpair", 1, 5) == ALLOWED
    for family, kind in ((1, 2), (1, 3), (2, 1), (30, 1)):
        assert made.of("socketpair", family, kind) == REFUSED | errno.EPERM


@pytest.mark.spec("TLS-319")
def test_with_network_only_plain_tcp_udp_and_echo_are_left(machine: str) -> None:
    made = Filter(machine, network=True, own_namespaces=True)
    left = {
        (family, kind, protocol)
        for family in range(64)
        for kind in range(16)
        for protocol in (*range(20), 58, 132, 136, 255, 256, 262)
        if made.of("socket", family, kind | 0x80800, protocol) == ALLOWED
    }
    internet = {(family, 1, protocol) for family in (2, 10) for protocol in (0, 6)}
    internet |= {(family, 2, protocol) for family in (2, 10) for protocol in (0, 17, 1, 58)}
    assert {entry for entry in left if entry[0] != 16} == internet
    assert {entry[2] for entry in left if entry[0] == 16} == {0}
    for name, place in (("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3)):
        flags = [0] * 6
        assert made.of(name, *flags) == ALLOWED
        flags[place] = 0x20000000 | 0x4000
        assert made.of(name, *flags) == REFUSED | errno.EPERM
    assert made.of("setsockopt", 3, 6, 31) == REFUSED | errno.ENOPROTOOPT
    assert made.of("setsockopt", 3, 6, 1) == ALLOWED
    assert made.of("setsockopt", 3, 1, 31) == ALLOWED


@pytest.mark.spec("TLS-309")
def test_characters_cannot_be_pushed_into_a_terminal(machine: str) -> None:
    made = Filter(machine, network=True, own_namespaces=True)
    assert made.of("ioctl", 0, 0x5412) == REFUSED | errno.EPERM
    # The kernel looks at the low half alone.
    assert made.of("ioctl", 0, 0x1_0000_5412) == REFUSED | errno.EPERM
    assert made.of("ioctl", 0, 0x5413) == ALLOWED


@pytest.mark.spec("TLS-307")
def test_where_outsiders_are_visible_nothing_acts_on_them(machine: str) -> None:
    shared = Filter(machine, network=True, own_namespaces=False)
    own = Filter(machine, network=True, own_namespaces=True)
    for name in ("prlimit64", "sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr"):
        assert shared.of(name, 0) == ALLOWED
        assert shared.of(name, 4242) == REFUSED | errno.EPERM
        assert own.of(name, 4242) == ALLOWED
    assert shared.of("setpriority", 0, 0) == ALLOWED
    assert shared.of("setpriority", 0, 4242) == REFUSED | errno.EPERM
    assert shared.of("setpriority", 2, 0) == REFUSED | errno.EPERM
    assert shared.of("ioprio_set", 1, 0) == ALLOWED
    assert shared.of("ioprio_set", 1, 4242) == REFUSED | errno.EPERM
    for name in ("shmget", "msgget", "semget", "mq_open", "fchown", "fchownat"):
        assert shared.of(name) == REFUSED | errno.EPERM
        assert own.of(name) == ALLOWED
    assert shared.of("setxattr") == REFUSED | errno.EOPNOTSUPP
