"""Proving a form of the sandbox by running a command in it that tries to get out (TLS-286)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from services.common.toolhost.contract import ShellLimits, WorkspaceGrant
from services.tools.shell.command import GuardLost, plain_plan, run_command
from services.tools.shell.sandbox.policy import PolicyRefused, sandbox_policy
from services.tools.shell.sandbox.report import SandboxForm, Shortcoming

if TYPE_CHECKING:
    from services.tools.shell.sandbox.shell_sandbox import ShellSandbox

_SECONDS = 30.0
_MAX_REASON = 300
_SCRIPT = Path(__file__).with_name("inside.py")


async def try_form(sandbox: ShellSandbox, form: SandboxForm, *, network: bool) -> Shortcoming | None:
    """Try to break out of a form.

    Args:
        sandbox: Whose commands are confined.
        form: The form to try.
        network: Whether to try the sandbox that keeps the network.

    Returns:
        What is wrong with it; None when everything held.
    """
    with contextlib.ExitStack() as stack:
        made = stack.enter_context(tempfile.TemporaryDirectory(prefix="crew-probe-"))
        folder = await asyncio.to_thread(Path(made).resolve)
        places = _lay_out(folder)
        ports = [stack.enter_context(_listening()) for _ in range(2)] if network else [0, 0]
        grant = WorkspaceGrant(
            root=str(folder / "workspace"),
            private_paths=[places["hidden"]],
            shell_network=network,
            shell_write_paths=["open"],
            closed_ports=[ports[0]] if network else [],
            temp_dir=str(folder / "temp" / "probe"),
            limits=ShellLimits(cpu_seconds=20),
        )
        places |= {"network": network, "closed_port": ports[0], "open_port": ports[1], "service": os.getpid()}
        try:
            policy = await asyncio.to_thread(sandbox_policy, grant, "probe", hidden=sandbox.hidden)
            arguments = (sys.executable, "-I", "-S", "-c", _SCRIPT.read_text("utf-8"), json.dumps(places))
            plan = await sandbox.confine(plain_plan(grant, arguments), policy, form)
            result = await run_command(plan, timeout=_SECONDS)
        except (PolicyRefused, OSError, GuardLost) as error:
            return Shortcoming("refused", {"reason": str(error)[:_MAX_REASON] or type(error).__name__})
    printed = result.output.last(_MAX_REASON).strip()
    if result.outcome.failed_stage is not None:
        return Shortcoming("refused", {"reason": printed or result.outcome.failure})
    try:
        wrong = json.loads(printed.splitlines()[-1])
    except (ValueError, IndexError):
        return Shortcoming("refused", {"reason": printed or f"exit code {result.outcome.exit_code}"})
    return Shortcoming("leaks", {"names": ", ".join(wrong)}) if wrong else None


def _lay_out(folder: Path) -> dict[str, Any]:
    """Make a workspace with something to protect round it; the names the script looks for."""
    for name in ("workspace/open", "workspace/private", "temp/probe"):
        (folder / name).mkdir(parents=True)
    files = {"workspace_file": "workspace/read", "outside_file": "workspace/kept"}
    for name in (*files.values(), "workspace/private/key", "workspace/open/mine"):
        (folder / name).write_text("kept")
    return {
        "writable": str(folder / "workspace/open"),
        "hidden": str(folder / "workspace/private"),
        # Beside what may be written, so that it is there to be tried in every form.
        "outside": str(folder / "workspace"),
        **{name: str(folder / path) for name, path in files.items()},
    }


@contextlib.contextmanager
def _listening() -> Iterator[int]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(8)
        yield server.getsockname()[1]
