"""The ``crew`` command: finds the subcommand, imports it alone, and says what went wrong."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Protocol, cast

from services.cli.texts import complain, language, texts
from services.common.start import StartError

# In the order of the help page.
COMMANDS = (
    "up",
    "send",
    "audit",
    "doctor",
    "backup",
    "restore",
    "auth",
    "compose",
    "test",
    "migrate",
    "secrets",
    "version",
)


class Command(Protocol):
    """What the module of a subcommand holds."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""

    def run(self, arguments: argparse.Namespace) -> int:
        """Do it and return the exit code."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand; returns the exit code, 2 for a command line that cannot be read."""
    words = list(sys.argv[1:] if argv is None else argv)
    chosen = words[0] if words and words[0] in COMMANDS else None
    parser = argparse.ArgumentParser(prog="crew", description=texts().text(language(), "cli.about"))
    subparsers = parser.add_subparsers(dest="command", metavar="command", required=True)
    command: Command | None = None
    for name in COMMANDS:
        summary = texts().text(language(), f"cli.{name}.summary")
        subparser = subparsers.add_parser(name, help=summary, description=summary)
        # Imports of the others would cost every command their time.
        if name == chosen:
            command = cast("Command", import_module(f"services.cli.commands.{name}"))
            command.add_arguments(subparser)
    arguments = parser.parse_args(words)
    if command is None:
        parser.error(texts().text(language(), "cli.no_command"))
    try:
        return command.run(arguments)
    except StartError as error:
        complain(error.text(language()))
        return 1
    except BrokenPipeError:
        # The reader of our output left; Python would complain once more at its end.
        sys.stderr.close()
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
