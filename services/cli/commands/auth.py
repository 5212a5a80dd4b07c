"""``crew auth set-password``: the owner's password, typed twice and never shown (GTW-025)."""

from __future__ import annotations

import argparse
import asyncio
import getpass
import os
import sys

import grpc
from crew.v1 import auth_pb2, auth_pb2_grpc

from services.cli.home import Layout, check_running
from services.cli.texts import complain, language, say, texts
from services.common.rpc import connect
from services.common.start import StartError

MIN_CHARACTERS = 8
MAX_CHARACTERS = 1024


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to do."""
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("set-password", help=texts().text(language(), "cli.auth.set_password"))


def run(arguments: argparse.Namespace) -> int:
    """Ask for the password and hand it to the running orchestrator, which keeps its hash alone.

    Raises:
        StartError: No crew is running in this home, or the two passwords do not fit.
    """
    layout = Layout.from_environment(os.environ)
    check_running(layout)
    try:
        asyncio.run(_set(layout, _asked()))
    except grpc.aio.AioRpcError as error:
        complain(error.details() or error.code().name)
        return 1
    say("cli.auth.done")
    return 0


def _asked() -> str:
    words = texts()
    if not sys.stdin.isatty():
        password = sys.stdin.readline(MAX_CHARACTERS + 2).rstrip("\n")
    else:
        password = getpass.getpass(words.text(language(), "cli.auth.password"))
        if getpass.getpass(words.text(language(), "cli.auth.again")) != password:
            raise StartError("error.auth.different", catalogue=words)
    if not MIN_CHARACTERS <= len(password) <= MAX_CHARACTERS:
        raise StartError("error.auth.length", catalogue=words, least=MIN_CHARACTERS, most=MAX_CHARACTERS)
    return password


async def _set(layout: Layout, password: str) -> None:
    principal = auth_pb2.Principal(kind="local", id="cli", name="cli", scopes=("owner",))
    metadata = (("accept-language", language()), ("crew-principal-bin", principal.SerializeToString()))
    address, secrets = layout.socket("orchestrator"), layout.secrets("cli")
    async with connect(address, caller="cli", called="orchestrator", secrets_dir=secrets) as channel:
        request = auth_pb2.SetUpRequest(password=password, address="local")
        await auth_pb2_grpc.AuthStub(channel).SetUp(request, metadata=metadata)
