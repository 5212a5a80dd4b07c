"""Keeping the owner's keys out of every process but the orchestrator.

A process keeps the environment it was started with for as long as it lives, and so do the children
forked from it. So ``crew up`` puts its variables, with those of ``<home>/env``, into a file that
exists in memory alone, and executes itself again with an environment in which there is no secret.
Only the orchestrator's child inherits the file.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import orjson

from services.common.variables import home_of, read_env_file

# What the supervisor and the other services may know.
_PLAIN = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TERM", "TZ", "TMPDIR", "XDG_RUNTIME_DIR"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "VIRTUAL_ENV"),
    }
)
_PLAIN_OWN = (
    *("HOME", "RUN_DIR", "LANGUAGE", "TIMEZONE", "WEB_URL", "WORKSPACES_DIR", "UMASK"),
    *("HOST", "PORT", "GRPC_HOST", "GRPC_PORT", "GRPC_REFLECTION", "GRPC_INSECURE"),
    *(
        "GRPC_TLS_CERT",
        "GRPC_TLS_KEY",
        "AUTH",
        "AUTH_INSECURE",
        "SCHEDULE",
        "ALLOWED_HOSTS",
        "TRUSTED_PROXIES",
    ),
)
_HANDED_OVER = "MY_AGENT_VARIABLES_FD"
_MAX_BYTES = 4 * 1024 * 1024


def plain(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables that hold no secret and that the services may be told."""
    names = {*_PLAIN, *(f"MY_AGENT_{name}" for name in _PLAIN_OWN)}
    return {name: value for name, value in variables.items() if name in names or name.startswith("LC_")}


def handed_over() -> int | None:
    """The descriptor of the variables, when this process was executed by `start_again`."""
    text = os.environ.get(_HANDED_OVER, "")
    return int(text) if text.isdigit() else None


def start_again(command: list[str]) -> None:
    """Execute ``crew`` with `command` again, in a clean environment; does not return.

    Raises:
        StartError: ``<home>/env`` cannot be read.
    """
    home = home_of(os.environ)
    # A variable of the process wins over the file (AGT-011).
    variables = {**read_env_file(home / "env"), **os.environ}
    descriptor = _nameless_file()
    os.write(descriptor, orjson.dumps(variables))
    os.set_inheritable(descriptor, True)
    clean = {**plain(variables), "MY_AGENT_HOME": str(home), _HANDED_OVER: str(descriptor)}
    os.execve(sys.executable, [sys.executable, "-P", "-m", "services.cli.main", *command], clean)


def read_variables(descriptor: int) -> dict[str, str]:
    """The variables that were handed over; can be read again and again."""
    found: dict[str, str] = orjson.loads(os.pread(descriptor, _MAX_BYTES, 0))
    return found


def _nameless_file() -> int:
    if sys.platform == "linux":
        return os.memfd_create("variables", 0)
    descriptor, path = tempfile.mkstemp()
    Path(path).unlink()
    return descriptor
