"""Classic BPF for system-call filters: an assembler small enough to read.

A block is a list of instructions that either returns a verdict or falls through to what follows.
Jumps are counted from the instruction after.
"""

from __future__ import annotations

import errno
import struct

from services.common.confinement import syscalls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LOAD = 0x20
JUMP_EQUAL = 0x15
JUMP_AT_LEAST = 0x35
JUMP_ANY_BIT = 0x45
AND = 0x54
RETURN = 0x06

ALLOW = 0x7FFF0000
KILL_PROCESS = 0x80000000
ERRNO = 0x00050000

_X32_BIT = 0x40000000

# Operation, places to skip when true, places to skip when false, operand.
Instruction = tuple[int, int, int, int]


class FilterProgram:
    """A filter being written, for one architecture.

    It begins by ending every process that calls through a foreign ABI (32-bit, x32).

    Args:
        machine: The architecture, in the kernel's name for it.

    Raises:
        KeyError: The architecture has no table.
    """

    def __init__(self, machine: str) -> None:
        architecture, _ = syscalls.ARCHITECTURES[machine]
        self._machine = machine
        self._instructions: list[Instruction] = []
        self.add(LOAD, 4)
        self.add(JUMP_EQUAL, architecture, 1, 0)
        self.add(RETURN, KILL_PROCESS)
        self.add(LOAD, 0)
        if machine == "x86_64":
            self.add(JUMP_AT_LEAST, _X32_BIT, 0, 1)
            self.add(RETURN, KILL_PROCESS)

    def add(self, code: int, value: int, if_true: int = 0, if_false: int = 0) -> None:
        """Write one instruction."""
        self._instructions.append((code, if_true, if_false, value & 0xFFFFFFFF))

    def allow(self, names: Iterable[str]) -> None:
        """Let the named calls through."""
        for name in names:
            self.on_call(name, [(RETURN, 0, 0, ALLOW)])

    def refuse(self, names: Iterable[str], code: int = errno.EPERM) -> None:
        """Answer the named calls with an error."""
        for name in names:
            self.on_call(name, [(RETURN, 0, 0, ERRNO | code)])

    def on_call(self, name: str, body: Sequence[Instruction]) -> None:
        """Run `body`, which has to return, when the call is `name`; nothing where it does not exist."""
        number = syscalls.number(name, self._machine)
        if number is None:
            return
        self.add(JUMP_EQUAL, number, 0, len(body))
        self._instructions.extend((code, yes, no, value & 0xFFFFFFFF) for code, yes, no, value in body)

    def packed(self) -> bytes:
        """The filter as the kernel reads it, eight bytes an instruction."""
        return b"".join(struct.pack("=HBBI", *instruction) for instruction in self._instructions)


def load_argument(argument: int) -> Instruction:
    """Load the low half of an argument, for arguments of which the kernel ignores the high half."""
    return (LOAD, 0, 0, 16 + 8 * argument)


def refuse_bits(argument: int, bits: int) -> list[Instruction]:
    """Refuse the call when any of `bits` is set in the argument, else allow it."""
    return [
        load_argument(argument),
        (JUMP_ANY_BIT, 0, 1, bits),
        (RETURN, 0, 0, ERRNO | errno.EPERM),
        (RETURN, 0, 0, ALLOW),
    ]


def need_bits(argument: int, bits: int) -> list[Instruction]:
    """Allow the call when any of `bits` is set in the argument, else refuse it."""
    return [
        load_argument(argument),
        (JUMP_ANY_BIT, 0, 1, bits),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, ERRNO | errno.EPERM),
    ]


def refuse_values(argument: int, values: Sequence[int]) -> list[Instruction]:
    """Refuse the call when the argument is one of `values`, else allow it."""
    refused = [(JUMP_EQUAL, len(values) - place, 0, value) for place, value in enumerate(values)]
    return [load_argument(argument), *refused, (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, ERRNO | errno.EPERM)]


def unless_argument(argument: int, allowed: Sequence[int], *, mask: int | None = None) -> list[Instruction]:
    """Go on after this block when the argument is one of `allowed`, else refuse the call."""
    checks = [(JUMP_EQUAL, len(allowed) - place, 0, value) for place, value in enumerate(allowed)]
    return [
        load_argument(argument),
        *([(AND, 0, 0, mask)] if mask is not None else []),
        *checks,
        (RETURN, 0, 0, ERRNO | errno.EPERM),
    ]
