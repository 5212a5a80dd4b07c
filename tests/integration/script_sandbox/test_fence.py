"""The fence: both forms hold, the trial would notice if they did not, and what the service says of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from crew.v1 import script_sandbox_pb2 as pb

from services.script_sandbox.fence import proof
from services.script_sandbox.fence.forms import FORMS, Form
from services.script_sandbox.fence.launcher import fence_plan
from services.script_sandbox.fence.plan import FencePlan
from services.script_sandbox.limits import Limits
from tests.fixtures.script_sandbox import Caller, SandboxProcess

ROOT = Path(__file__).parents[3]


@pytest.mark.spec("SCR-251", "SCR-252")
@pytest.mark.parametrize("form", FORMS)
async def test_a_form_holds_in_every_point(form: Form, tmp_path: Path) -> None:
    fence = await proof.prove_fence(tmp_path, Limits(), forms=[form])
    if fence.form is None and "refused" in {reason.key for reason in fence.shortcomings.values()}:
        pytest.skip(f"this machine does not allow it: {fence.sentence('en')}")
    assert fence.form == form
    assert fence.launcher is not None
    assert form in fence.launcher.name


@pytest.mark.spec("SCR-253")
def test_the_trial_notices_what_is_open() -> None:
    """Without a fence almost every attempt gets through: the trial does try."""
    program = f"import sys; sys.path.append({str(ROOT)!r}); from services.script_sandbox.fence import attempts; attempts.try_everything({os.getpid()})"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, cwd="/", check=False
    )
    for name in (
        "socket_inet",
        "socket_unix",
        "read_passwd",
        "list_root",
        "memory_file",
        "fork",
        "signal_outsider",
    ):
        assert name in done.stdout


@pytest.mark.spec("SCR-253")
async def test_a_form_that_leaks_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leaking = tmp_path / "leaking"
    leaking.write_text("#!/bin/sh\necho '[\"socket_inet\"]'\n")
    leaking.chmod(0o700)
    monkeypatch.setattr(proof, "write_launcher", lambda plan, folder: leaking)
    fence = await proof.prove_fence(tmp_path, Limits())
    assert fence.form is None
    assert fence.launcher is None
    for locale in ("en", "vi"):
        assert "socket_inet" in fence.sentence(locale)
    leaking.write_text("#!/bin/sh\necho broken >&2; exit 1\n")
    assert "broken" in (await proof.prove_fence(tmp_path, Limits())).sentence("en")


@pytest.mark.spec("SCR-252")
async def test_a_worker_stands_behind_limits_and_holds_nothing(
    sandbox: SandboxProcess, caller: Caller
) -> None:
    call = caller.stub.Run()
    await call.write(pb.ToSandbox(start=pb.ScriptStart(script="tools.f()")))
    async for message in call:
        if message.HasField("tool_call"):
            break
    for pid in sandbox.children():
        folder = Path(f"/proc/{pid}")
        if "monty" not in os.readlink(folder / "exe"):
            continue
        status = dict(
            line.split(":", 1) for line in (folder / "status").read_text().splitlines() if ":" in line
        )
        assert status["Seccomp"].strip() == "2"
        assert status["NoNewPrivs"].strip() == "1"
        assert int(status["CapEff"], 16) == int(status["CapBnd"], 16) == 0
        assert (folder / "environ").read_bytes().strip(b"\0") == b""
        limits = (folder / "limits").read_text()
        assert "Max file size             0 " in limits
        assert "Max core file size        0 " in limits
        files = {os.readlink(file) for file in (folder / "fd").iterdir()}
        assert len(files) <= 4, files
        assert not any(name.startswith("socket:") for name in files)
    call.cancel()


@pytest.mark.spec("SCR-253")
async def test_the_service_says_which_fence_holds(caller: Caller) -> None:
    said = await caller.stub.Describe(pb.DescribeSandboxRequest(locale="en"))
    assert said.form in FORMS
    assert "proven at the start" in said.note
    assert said.engine.startswith("monty-")
    vi = await caller.stub.Describe(pb.DescribeSandboxRequest(locale="vi"))
    assert "chứng minh" in vi.note


async def test_a_plan_is_read_as_it_was_written() -> None:
    plan = await fence_plan("landlock", Limits())
    read, rest = FencePlan.read([*plan.words(), "subprocess", "--x"])
    assert rest == ["subprocess", "--x"]
    assert all(getattr(read, name) == getattr(plan, name) for name in FencePlan.__slots__)
    with pytest.raises(ValueError):
        FencePlan.read(["other", *plan.words()[1:]])
