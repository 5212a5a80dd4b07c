"""A paused script as bytes: the engine's dump, and what of it is kept outside the engine."""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import dataclass

from services.script_sandbox.engine.printed import Printed
from services.script_sandbox.engine.workers import ENGINE, PRELUDE

_MARK = b"crew-script-1\n"
_LENGTH = struct.Struct(">I")
# A larger one is not sent: the script starts anew after a restart.
MOST_BYTES = 4 * 1024 * 1024
_HEADER_BYTES = 1024 * 1024


class UnusableCheckpoint(Exception):
    """It is damaged, or of another script, prelude or engine."""


@dataclass(frozen=True, slots=True)
class Paused:
    """A script that waits for the answer to a request.

    Attributes:
        seq: Of the request.
        printed: What it has printed.
        dump: Of the engine.
    """

    seq: int
    printed: Printed
    dump: bytes


def write_checkpoint(script: str, paused: Paused) -> bytes | None:
    """The paused script as bytes; None when they would be too many."""
    header = json.dumps(
        {"for": _identity(script), "seq": paused.seq, "printed": paused.printed.state()}
    ).encode()
    if len(header) > _HEADER_BYTES or len(header) + len(paused.dump) + 64 > MOST_BYTES:
        return None
    return b"".join((_MARK, _LENGTH.pack(len(header)), header, paused.dump))


def read_checkpoint(script: str, state: bytes, printed_chars: int) -> Paused:
    """Read what `write_checkpoint` wrote for the same script.

    Raises:
        UnusableCheckpoint: It cannot be gone on from.
    """
    start = len(_MARK) + _LENGTH.size
    if not state.startswith(_MARK) or len(state) < start or len(state) > MOST_BYTES:
        raise UnusableCheckpoint("mark")
    (length,) = _LENGTH.unpack(state[len(_MARK) : start])
    try:
        header = json.loads(state[start : start + length])
        if header["for"] != _identity(script) or not isinstance(header["seq"], int):
            raise UnusableCheckpoint("another script or engine")
        printed = Printed.restored(printed_chars, header["printed"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UnusableCheckpoint("header") from None
    return Paused(header["seq"], printed, state[start + length :])


def _identity(script: str) -> str:
    """What a dump depends on: the engine, the prelude, and the script."""
    parts = "\0".join((ENGINE, PRELUDE, script))
    return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()
