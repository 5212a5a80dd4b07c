"""What Health and Connections say of the script sandbox."""

from __future__ import annotations

import pytest

from services.orchestrator.hosts.script_sandbox import ScriptSandboxState
from tests.fixtures.script_sandbox import Caller, SandboxProcess


@pytest.mark.spec("SCR-253")
async def test_its_fence_is_shown_and_its_silence_is_a_state(own_sandbox: SandboxProcess) -> None:
    caller = Caller(own_sandbox)
    watched = ScriptSandboxState(caller.channel)
    state = await watched.state("en")
    assert (state.name, state.status, state.isolation, state.note) == ("script_sandbox", "ready", "os", "")
    assert "proven at the start" in state.isolation_note
    own_sandbox.kill()
    silent = await watched.state("vi")
    assert silent.status == "unreachable"
    assert silent.note.startswith("Script sandbox không trả lời (UNAVAILABLE)")
    await caller.close()
