"""The shell sandbox in the tools image, under what the shipped file grants its container."""

from __future__ import annotations

import json

import pytest

from tests.e2e.compose.engine import COMPOSE_FILE, docker, resolve

pytestmark = pytest.mark.timeout(300)

_PROBE = """
import asyncio, json
from services.tools.shell.sandbox.shell_sandbox import ShellSandbox
report = asyncio.run(ShellSandbox().probe())
print(json.dumps({"form": report.form, "isolation": report.isolation, "network": report.keeps_network}))
"""


def _probed(*options: str) -> dict[str, object]:
    """What the service's own probe proves when its container gets these security options."""
    done = docker(
        "run", "--rm", "--network", "none", "--read-only", "--cap-drop", "ALL", "--user", "1000:1000",
        "--tmpfs", "/tmp:exec", "--init", "--pids-limit", "512",
        *(f"--security-opt={option}" for option in options),
        "my-agent-crew/tools:local", "python", "-c", _PROBE,
    )  # fmt: skip
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def _shipped() -> list[str]:
    # With nothing set, as compose 2 starts it; compose 1 writes a path after a colon.
    service = resolve(COMPOSE_FILE, environ={"CREW_PROC": ""})["services"]["tools"]
    return [option.replace("seccomp:", "seccomp=", 1) for option in service["security_opt"]]


@pytest.mark.spec("TLS-308", "TLS-324")
def test_bubblewrap_works_with_what_the_shipped_file_grants(engine: None) -> None:
    options = _shipped()
    assert "systempaths=unconfined" in options
    found = _probed(*options)
    assert found == {"form": "bubblewrap", "isolation": "container", "network": True}


def test_without_the_shipped_filter_bubblewrap_does_not(engine: None) -> None:
    # Otherwise the file would grant what nothing needs.
    without = [option for option in _shipped() if not option.startswith("seccomp=")]
    assert _probed(*without)["form"] != "bubblewrap"


def test_what_the_filter_refuses_stays_refused(engine: None) -> None:
    program = """
import ctypes, errno, json, socket
libc = ctypes.CDLL(None, use_errno=True)
numbers = {"ptrace": 101, "add_key": 248, "io_uring_setup": 425, "bpf": 321, "perf_event_open": 298,
           "setns": 308, "userfaultfd": 323, "open_by_handle_at": 304, "process_vm_readv": 310}
codes = {}
for name, number in numbers.items():
    ctypes.set_errno(0)
    result = libc.syscall(number, 0, 0, 0, 0, 0)
    codes[name] = errno.errorcode.get(ctypes.get_errno(), "") if result == -1 else "allowed"
for family in (socket.AF_PACKET, socket.AF_VSOCK, 38, socket.AF_BLUETOOTH):
    try:
        socket.socket(family, socket.SOCK_RAW).close()
        codes[f"family {family}"] = "allowed"
    except OSError as error:
        codes[f"family {family}"] = errno.errorcode[error.errno]
print(json.dumps(codes))
"""
    done = docker(
        "run", "--rm", "--network", "none", "--cap-drop", "ALL", "--user", "1000:1000",
        *(f"--security-opt={option}" for option in _shipped()),
        "my-agent-crew/tools:local", "python", "-c", program,
    )  # fmt: skip
    codes = json.loads(done.stdout)
    machine = docker("run", "--rm", "my-agent-crew/tools:local", "uname", "-m").stdout.strip()
    if machine != "x86_64":
        pytest.skip("the numbers above are those of x86_64")
    assert {name: code for name, code in codes.items() if code not in {"EPERM", "ENOSYS"}} == {}
