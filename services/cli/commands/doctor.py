"""``crew doctor``: one page on what is there, what is missing and what to do (FLD-050)."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator

from services.cli.doctor.crew import database, folders, misspelt, services
from services.cli.doctor.findings import Finding, bad, good
from services.cli.doctor.machine import machine
from services.cli.doctor.network import models, proxy
from services.cli.home import Layout
from services.cli.texts import language, say, speak, texts
from services.common.settings import CrewConfig, load_config, read_env_file
from services.common.start import StartError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The address people use, to be tried as a browser would."""
    parser.add_argument("--url", help=texts().text(language(), "cli.doctor.url"))


def run(arguments: argparse.Namespace) -> int:
    """Print the page; returns 1 when something on it does not work."""
    layout = Layout.from_environment(os.environ)
    try:
        variables = {**read_env_file(layout.env), **os.environ}
        config = load_config(layout.config, variables).values
        speak(config.language)
        settings = good("config" if layout.config.exists() else "no_config", file=layout.config)
    except StartError as error:
        variables, config = dict(os.environ), CrewConfig()
        settings = bad("folder", problem=error.text(language()))
    failed = False
    parts: tuple[tuple[str, Iterator[Finding]], ...] = (
        ("machine", machine(layout.home)),
        ("home", folders(layout)),
        ("settings", iter([settings, *misspelt(variables)])),
        ("database", database(layout)),
        ("models", models(config, variables)),
        ("services", services()),
        ("address", proxy(arguments.url) if arguments.url else iter(())),
    )
    for title, findings in parts:
        found = list(findings)
        if not found:
            continue
        say(f"doctor.title.{title}")
        for finding in found:
            failed = failed or finding.state == "bad"
            for line in finding.lines():
                print(f"  {line}")
    return 1 if failed else 0
