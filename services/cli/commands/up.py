"""``crew up``: the whole crew on this machine, until Ctrl-C."""

from __future__ import annotations

import argparse
import os

from services.cli.native.environment import handed_over, plain, start_again
from services.cli.texts import language, texts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where the crew is reached."""
    words = texts()
    parser.add_argument("--host", help=words.text(language(), "cli.up.host"))
    parser.add_argument("--port", type=int, help=words.text(language(), "cli.up.port"))
    parser.add_argument("--grpc-port", type=int, help=words.text(language(), "cli.up.grpc_port"))
    parser.add_argument(
        "--no-schedule", action="store_true", help=words.text(language(), "cli.up.no_schedule")
    )


def run(arguments: argparse.Namespace) -> int:
    """Start everything, print the address, keep it running.

    Raises:
        StartError: Something stands in the way; nothing is left running.
    """
    variables = handed_over()
    if variables is None:
        given = {"--host": arguments.host, "--port": arguments.port, "--grpc-port": arguments.grpc_port}
        options = [part for name, value in given.items() if value is not None for part in (name, str(value))]
        start_again(["up", *options, *(["--no-schedule"] if arguments.no_schedule else [])])
    environ = plain(os.environ)
    chosen = {"HOST": arguments.host, "PORT": arguments.port, "GRPC_PORT": arguments.grpc_port}
    environ |= {f"MY_AGENT_{name}": str(value) for name, value in chosen.items() if value is not None}
    if arguments.no_schedule:
        environ["MY_AGENT_SCHEDULE"] = "off"
    # What it imports is for the process that forks the services alone.
    from services.cli.native.crew import up

    return up(environ, variables)
