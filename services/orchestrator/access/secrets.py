"""Secrets this service makes: random, shown once, kept as a digest."""

from __future__ import annotations

import hashlib
import secrets

_BYTES = 32


def new_secret() -> str:
    """A random secret of 256 bits."""
    return secrets.token_urlsafe(_BYTES)


def digest(secret: str) -> bytes:
    """What is kept of a secret that is random and long."""
    return hashlib.sha256(secret.encode()).digest()
