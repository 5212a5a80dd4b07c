"""Direction tokens: each arrow between two services has a secret of its own.

The caller keeps the token, the called side keeps its SHA-256, so that whoever breaks into a service
gains nothing that opens another one in the caller's name.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from services.common.start import StartError

_BYTES = 32
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Arrow:
    """One direction of calls, named by the services at its ends."""

    caller: str
    called: str

    def token_file(self, folder: Path) -> Path:
        """Where the caller keeps the token."""
        return folder / f"{self.caller}-to-{self.called}.token"

    def digest_file(self, folder: Path) -> Path:
        """Where the called side keeps what the token is checked against."""
        return folder / f"{self.caller}-to-{self.called}.sha256"


# gateway and command line reach the orchestrator; it alone reaches tool hosts and its own replicas.
ARROWS = (
    Arrow("gateway", "orchestrator"),
    Arrow("cli", "orchestrator"),
    Arrow("orchestrator", "orchestrator"),
    Arrow("orchestrator", "tools"),
    Arrow("orchestrator", "script_sandbox"),
)


def issue(arrow: Arrow, caller_folder: Path, called_folder: Path) -> bool:
    """Make the token of an arrow unless both sides hold one that fits; folders are made 0700.

    Returns:
        Whether a new token was made.
    """
    token_file, digest_file = arrow.token_file(caller_folder), arrow.digest_file(called_folder)
    for folder in (caller_folder, called_folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    token = _read(token_file)
    if _TOKEN.fullmatch(token) and hmac.compare_digest(_digest(token), _read(digest_file)):
        return False
    token = secrets.token_urlsafe(_BYTES)
    # The digest first: between the two writes the old token fails, and never a stale one passes.
    _write(digest_file, _digest(token))
    _write(token_file, token)
    return True


def issue_all(root: Path, arrows: Iterable[Arrow] = ARROWS) -> int:
    """Issue every arrow below `root`, which has one folder a service; returns how many are new."""
    return sum(issue(arrow, root / arrow.caller, root / arrow.called) for arrow in arrows)


def read_token(folder: Path, arrow: Arrow) -> str:
    """The token that the caller shows.

    Raises:
        StartError: It is missing or damaged.
    """
    path = arrow.token_file(folder)
    token = _read(path)
    if not token:
        raise StartError("error.start.token_missing", file=path, caller=arrow.caller, called=arrow.called)
    if not _TOKEN.fullmatch(token):
        raise StartError("error.start.token_damaged", file=path)
    return token


class Verifier:
    """Tells which caller a token belongs to, in a time that does not depend on the token.

    Args:
        digests: The SHA-256 of each caller's token in hexadecimal, by caller.
    """

    def __init__(self, digests: Mapping[str, str]) -> None:
        self._digests = dict(digests)

    @classmethod
    def read(cls, folder: Path, called: str, callers: Iterable[str]) -> Verifier:
        """Read the digests of the named callers from the folder of the called side.

        Raises:
            StartError: One is missing or damaged.
        """
        digests: dict[str, str] = {}
        for caller in callers:
            path = Arrow(caller, called).digest_file(folder)
            digest = _read(path)
            if not digest:
                raise StartError("error.start.token_missing", file=path, caller=caller, called=called)
            if not _DIGEST.fullmatch(digest):
                raise StartError("error.start.token_damaged", file=path)
            digests[caller] = digest
        return cls(digests)

    def caller(self, token: str) -> str | None:
        """The caller whose token this is, or None."""
        shown = _digest(token)
        found: str | None = None
        for caller, digest in self._digests.items():
            if hmac.compare_digest(shown, digest):
                found = caller
        return found


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _read(path: Path) -> str:
    try:
        return path.read_bytes()[:1024].decode("ascii", errors="replace").strip()
    except FileNotFoundError:
        return ""


def _write(path: Path, text: str) -> None:
    """Replace the file as a whole, never readable by others on the way."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
