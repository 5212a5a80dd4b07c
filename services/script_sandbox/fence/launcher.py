"""The program that the pool of workers starts in place of the bare interpreter."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import sys
import sysconfig
from pathlib import Path

from services.script_sandbox.fence.forms import Form
from services.script_sandbox.fence.plan import FencePlan
from services.script_sandbox.limits import Limits

_LAUNCH = Path(__file__).with_name("launch.py")
_LOADER = re.compile(r"(/\S*/ld-[\w.-]+\.so(?:\.\d+)?)\s*$", re.MULTILINE)
_SECONDS = 20.0
# The interpreter's own text, stacks and allocator, over what a script's values may take.
_OWN_BYTES = 512 * 1024 * 1024
_OPEN_FILES = 16


class NoInterpreter(Exception):
    """The interpreter or what it is loaded with could not be found."""


def interpreter_program() -> Path:
    """Where the engine's package put its program.

    Raises:
        NoInterpreter: It is not installed.
    """
    for folder in (Path(sysconfig.get_path("scripts")), Path(sys.executable).parent):
        program = folder / "monty"
        if program.is_file():
            return program
    raise NoInterpreter("monty")


async def fence_plan(form: Form, limits: Limits) -> FencePlan:
    """Plan the fence of a form round the interpreter.

    Raises:
        NoInterpreter: The interpreter is missing, or the system cannot say what it loads.
    """
    program = await asyncio.to_thread(interpreter_program)
    return FencePlan(
        form=form,
        program=str(program),
        files=(str(program), *await _loaded_with(program)),
        cpu_seconds=int(limits.cpu_seconds),
        memory_bytes=2 * limits.memory_bytes + _OWN_BYTES,
        open_files=_OPEN_FILES,
    )


def write_launcher(plan: FencePlan, folder: Path) -> Path:
    """Write the command that becomes the interpreter as one program, which is what the pool takes.

    Args:
        plan: Of the fence.
        folder: The service's own; programs can be run from it.
    """
    path = folder / f"worker-{plan.form}"
    command = (sys.executable, "-I", "-S", "-B", str(_LAUNCH), *plan.words())
    words = " ".join(shlex.quote(word) for word in command)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o700)
    with os.fdopen(descriptor, "w") as file:
        file.write(f'#!/bin/sh\nexec {words} "$@"\n')
    return path


async def _loaded_with(program: Path) -> list[str]:
    """The libraries and the loader of a program, asked of the loader itself."""
    maps = await asyncio.to_thread(Path("/proc/self/maps").read_text)
    found = _LOADER.search(maps)
    if found is None:
        raise NoInterpreter("the loader of programs")
    process = await asyncio.create_subprocess_exec(
        *(found.group(1), "--list", str(program)),
        env={},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        printed, _ = await asyncio.wait_for(process.communicate(), _SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
        raise NoInterpreter("the loader of programs") from None
    names = [word for word in printed.decode().split() if word.startswith("/")]
    if process.returncode or not names:
        raise NoInterpreter("the libraries of monty")
    return names
