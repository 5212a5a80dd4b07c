"""Secrets of a container deployment: one folder a service, nothing in an environment."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path

from services.cli.prepare.rights import Identity
from services.common.rpc.tokens import issue_all

_PASSWORD = re.compile(r"[0-9a-f]{64}")
# Role of the database, the folder that gets its password file, by the name of the password.
_ROLES = {"owner": ("crew_owner", "cli"), "app": ("crew_app", "orchestrator")}


def make_secrets(root: Path, identities: Mapping[str, Identity]) -> None:
    """Make what is missing and give each service's folder to the user it runs as.

    A second run changes nothing that fits. Direction tokens go to both ends of each arrow; the
    database's passwords to the database, and as a libpq password file to the one service that
    opens the database as that role.

    Args:
        root: Has one folder a service.
        identities: Whom each of these services runs as; their folders are those made.
    """
    for service in identities:
        (root / service).mkdir(mode=0o700, parents=True, exist_ok=True)
    issue_all(root)
    for name, (role, service) in _ROLES.items():
        password_file = root / "postgres" / f"{name}.password"
        password = password_file.read_text("ascii").strip() if password_file.exists() else ""
        if not _PASSWORD.fullmatch(password):
            password = secrets.token_hex(32)
            _write(password_file, password)
        line = f"*:*:*:{role}:{password}"
        passfile = root / service / "database.pgpass"
        if not passfile.exists() or passfile.read_text("ascii").strip() != line:
            _write(passfile, line)
    for service, identity in identities.items():
        _give(root / service, identity)


def _write(path: Path, text: str) -> None:
    """Replace the file as a whole: a killed start leaves the old one or the new one."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, path)


def _give(folder: Path, identity: Identity) -> None:
    os.chmod(folder, 0o700)
    for path in (folder, *folder.iterdir()):
        os.chown(path, identity.uid, identity.gid, follow_symlinks=False)
