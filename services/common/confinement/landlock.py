"""Landlock: rulesets of files, TCP ports and scopes, by system call.

The bits are those of `linux/landlock.h`. Rules only allow, and a process that has entered a ruleset
can enter further ones but never leave (docs.kernel.org, userspace-api/landlock).
"""

from __future__ import annotations

import os
import stat
import struct

from services.common.confinement import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_CREATE_RULESET = 444
_ADD_RULE = 445
_RESTRICT_SELF = 446
_GET_VERSION = 1

_RULE_PATH_BENEATH = 1
_RULE_NET_PORT = 2

EXECUTE = 1 << 0
WRITE_FILE = 1 << 1
READ_FILE = 1 << 2
READ_DIR = 1 << 3
REMOVE_DIR = 1 << 4
REMOVE_FILE = 1 << 5
MAKE_CHAR = 1 << 6
MAKE_DIR = 1 << 7
MAKE_REG = 1 << 8
MAKE_SOCK = 1 << 9
MAKE_FIFO = 1 << 10
MAKE_BLOCK = 1 << 11
MAKE_SYM = 1 << 12
REFER = 1 << 13
TRUNCATE = 1 << 14
IOCTL_DEV = 1 << 15

ALL_FILE_ACCESS = (1 << 16) - 1
READ_AND_RUN = EXECUTE | READ_FILE | READ_DIR
WRITE_BENEATH = (
    READ_AND_RUN
    | WRITE_FILE
    | REMOVE_DIR
    | REMOVE_FILE
    | MAKE_DIR
    | MAKE_REG
    | MAKE_SOCK
    | MAKE_FIFO
    | MAKE_SYM
    | REFER
    | TRUNCATE
)
USE_DEVICE = READ_FILE | WRITE_FILE | TRUNCATE | IOCTL_DEV
_ON_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV

CONNECT_TCP = 1 << 1

SCOPE_ABSTRACT_SOCKETS = 1 << 0
SCOPE_SIGNALS = 1 << 1

# TLS-308: truncation (3), TCP ports (4), device calls (5), abstract sockets and signals (6).
COMPLETE_ABI = 6
PORTS_ABI = 4

_PORTS = 1 << 16


def abi() -> int:
    """The version of Landlock that the kernel offers; 0 when it is absent or switched off."""
    try:
        return kernel.syscall(_CREATE_RULESET, None, 0, _GET_VERSION)
    except OSError:
        return 0


def create_ruleset(*, files: int = 0, tcp: int = 0, scopes: int = 0) -> int:
    """Create a ruleset that refuses the given kinds of access; returns its descriptor.

    Raises:
        OSError: The kernel does not know one of them.
    """
    attributes = [files]
    if tcp or scopes:
        attributes.append(tcp)
    if scopes:
        attributes.append(scopes)
    packed = struct.pack(f"{len(attributes)}Q", *attributes)
    return kernel.syscall(_CREATE_RULESET, packed, len(packed), 0)


def allow_beneath(ruleset: int, path: str, access: int) -> None:
    """Allow `access` on a file, or on a directory and everything beneath it.

    The last component is not followed when it is a symbolic link.

    Raises:
        OSError: The path does not exist or cannot be opened.
    """
    descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISLNK(mode):
            raise OSError(f"{path} is a symbolic link")
        if not stat.S_ISDIR(mode):
            access &= _ON_FILES
        kernel.syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, struct.pack("=Qi", access, descriptor), 0)
    finally:
        os.close(descriptor)


def ports_ruleset(closed: Iterable[int]) -> int:
    """Create a ruleset under which TCP connections to the `closed` ports are refused everywhere.

    Rules allow one port each, so this makes some 65,500 of them (about 0.1 s): it is made once and
    entered by every command.
    """
    shut = frozenset(closed)
    ruleset = create_ruleset(tcp=CONNECT_TCP)
    for port in range(_PORTS):
        if port not in shut:
            kernel.syscall(_ADD_RULE, ruleset, _RULE_NET_PORT, struct.pack("=QQ", CONNECT_TCP, port), 0)
    return ruleset


def enter(ruleset: int) -> None:
    """Put this process and everything it starts under `ruleset`, for good.

    Raises:
        OSError: New privileges were not given up before, or too many rulesets are in force.
    """
    kernel.syscall(_RESTRICT_SELF, ruleset, 0)
