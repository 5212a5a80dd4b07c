"""Sets the owner's password from the terminal: ``python -m services.orchestrator.access set-password``."""

from __future__ import annotations

import asyncio
import getpass
import os
import sys
from collections.abc import Mapping

from services.common.errors import CrewError
from services.common.wording import load, locale_of
from services.orchestrator.access.audit import AccessAudit
from services.orchestrator.access.logins import Logins
from services.orchestrator.access.passwords import Passwords
from services.orchestrator.access.principal import Principal
from services.orchestrator.store.pool import Database

_USAGE = 2


async def set_password(database_url: str, password: str) -> None:
    """Replace the owner's password and end every session.

    Raises:
        Invalid: The password is too short or too long.
        PoolTimeout: The database does not answer.
    """
    database = Database(database_url, size=1)
    await database.open()
    try:
        logins = Logins(database, Passwords(), AccessAudit(database))
        await logins.set_password(password, Principal("terminal", "terminal"))
    finally:
        await database.close()


def main(arguments: list[str], environ: Mapping[str, str]) -> int:
    """Ask for the password twice, or read it from standard input when that is no terminal."""
    words = load("orchestrator")
    locale = locale_of(environ.get("MY_AGENT_LANGUAGE"))
    if arguments != ["set-password"]:
        sys.stderr.write("usage: python -m services.orchestrator.access set-password\n")
        return _USAGE
    if sys.stdin.isatty():
        password = getpass.getpass(words.text(locale, "command.set_password.prompt"))
        if getpass.getpass(words.text(locale, "command.set_password.again")) != password:
            sys.stderr.write(words.text(locale, "command.set_password.differ") + "\n")
            return 1
    else:
        password = sys.stdin.readline(10_000).rstrip("\r\n")
    try:
        asyncio.run(set_password(environ["MY_AGENT_DATABASE_URL"], password))
    except CrewError as error:
        sys.stderr.write(words.text(locale, error.key, **error.values) + "\n")
        return 1
    sys.stderr.write(words.text(locale, "command.set_password.done") + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
