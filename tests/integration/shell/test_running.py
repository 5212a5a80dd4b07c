"""Running commands: output, ends, environment, limits, and the end of everything they start."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from services.common.toolhost.contract import Ask, NoOpinion, Refuse, Routine, Run, ShellLimits, ToolError
from services.tools.shell.sandbox.report import SandboxForm, SandboxReport
from services.tools.shell.sandbox.shell_sandbox import ShellSandbox
from services.tools.shell.shell_run import ShellRun

from .conftest import PYTHON, Shell, running_with, unheard, until

ALLOWED_NAMES = {"PATH", "HOME", "LANG", "LC_ALL", "TERM", "TMPDIR", "USER", "SHELL"}
SET_BY_SHELLS = {"PWD", "OLDPWD", "SHLVL", "_"}


@pytest.fixture(params=["plain", "closed"])
def any_shell(request: pytest.FixtureRequest, plain: Shell) -> Shell:
    """Without a sandbox, and in the best form that works."""
    if request.param == "plain":
        return plain
    probed: dict[SandboxForm, tuple[ShellSandbox, SandboxReport]] = request.getfixturevalue("probed")
    for sandbox, report in probed.values():
        if report.form is not None:
            return Shell(sandbox, replace(plain.grant, shell_network=False, shell_write_paths=["."]))
    pytest.skip("NOT PROVEN HERE: no form of the sandbox works")


@pytest.mark.spec("TLS-243")
async def test_output_and_errors_come_together_in_order(any_shell: Shell) -> None:
    result = await any_shell.call("echo one; echo two >&2; echo three; pwd")
    assert result.text == f"one\ntwo\nthree\n{any_shell.workspace}\n"
    assert result.details["exit_code"] == 0


@pytest.mark.spec("TLS-244", "TLS-245")
async def test_the_environment_holds_only_the_listed_names(
    any_shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-secret")
    monkeypatch.setenv("BASH_ENV", "/etc/profile")
    result = await any_shell.call("env")
    names = {line.partition("=")[0] for line in result.text.splitlines()}
    assert names <= ALLOWED_NAMES | SET_BY_SHELLS
    assert "PATH" in names
    assert "sk-secret" not in result.text


@pytest.mark.spec("TLS-433")
async def test_nothing_but_files_lasts_from_call_to_call(any_shell: Shell) -> None:
    await any_shell.call("echo kept > file; cd /; X=1; f() { :; }; export X")
    result = await any_shell.call("pwd; echo [$X]; type f; cat file; true")
    assert result.text.splitlines()[:2] == [str(any_shell.workspace), "[]"]
    assert "kept" in result.text
    assert "f is a function" not in result.text


@pytest.mark.spec("TLS-250")
async def test_a_failure_states_its_code_after_the_last_4000_characters(any_shell: Shell) -> None:
    with pytest.raises(ToolError) as caught:
        await any_shell.call("seq 1 100000; exit 1")
    expected = "".join(f"{number}\n" for number in range(1, 100_001))[-4000:]
    assert expected in caught.value.text
    assert caught.value.text.index("Exit code 1.") == caught.value.text.index(expected) + 4000
    assert caught.value.outcome == "done"


@pytest.mark.spec("TLS-250", "TLS-251", "TLS-252")
async def test_silence_is_said_in_words(any_shell: Shell) -> None:
    assert (await any_shell.call("true")).text == "The command succeeded and printed nothing."
    failed = (await any_shell.result("exit 3")).text
    assert failed.startswith("Exit code 3.")
    assert failed.endswith("It printed nothing.")


@pytest.mark.spec("TLS-253")
async def test_a_signal_is_reported(any_shell: Shell) -> None:
    assert "(SIGKILL)" in (await any_shell.result("kill -9 $$")).text


@pytest.mark.spec("TLS-254")
async def test_a_command_that_asks_reads_the_end_of_the_file(any_shell: Shell) -> None:
    assert (await any_shell.call("read x; echo [$x]; cat")).text == "[]\n"


@pytest.mark.spec("TLS-256")
async def test_bytes_that_are_no_text_are_replaced(any_shell: Shell) -> None:
    result = await any_shell.call(r"printf '\xff\x1b[1mbold\x00'")
    assert result.text == "\ufffd\x1b[1mbold\ufffd"


@pytest.mark.spec("PIP-070", "PIP-072")
async def test_a_command_runs_exactly_as_written(any_shell: Shell) -> None:
    assert (await any_shell.call("printf '%s|' “a b” $'x\\n' '  '")).text == "“a|b”|x\n|  |"
    assert (await any_shell.result("-x")).text.startswith(("/bin/bash", "/bin/sh", "/usr/bin/bash"))
    assert "é" in (await any_shell.call("echo e\u0301 é")).text


@pytest.mark.spec("TLS-247", "TLS-248")
async def test_a_timeout_that_is_no_time_is_an_argument_error(plain: Shell) -> None:
    tool = ShellRun(plain.sandbox)
    for wrong in (0, -1, "60", None, True, float("nan"), [5]):
        with pytest.raises(ToolError) as caught:
            await tool.run(Run(plain.context(), {"command": "touch ran", "timeout_s": wrong}, unheard))
        assert "timeout_s" in caught.value.text
        assert isinstance(await plain.judge("true", timeout_s=wrong), Refuse)
    assert not (plain.workspace / "ran").exists()
    assert (await plain.call("echo fine", timeout_s=10**9)).text == "fine\n"


@pytest.mark.spec("PIP-127")
async def test_what_no_command_can_be_is_refused_at_first_sight(plain: Shell) -> None:
    for wrong in ("", "  \n", "touch ran\0", "touch ran; echo " + "x" * 200_000, "touch ran \ud800"):
        with pytest.raises(ToolError):
            await plain.call(wrong)
    tool = ShellRun(plain.sandbox)
    for arguments in ({}, {"command": 5}, {"command": None}, {"command": ["ls"]}):
        with pytest.raises(ToolError):
            await tool.run(Run(plain.context(), arguments, unheard))
    assert not (plain.workspace / "ran").exists()


@pytest.mark.spec("TLS-255")
async def test_an_endless_printer_is_drained_and_ended(any_shell: Shell) -> None:
    result = await any_shell.result("yes 0123456789", timeout_s=2)
    assert result.details["ended"] == "timeout"
    assert result.details["total_chars"] > 6_000_000
    assert len(result.text) < 8_000


@pytest.mark.spec("TLS-249")
async def test_at_the_timeout_everything_ends_and_what_was_printed_is_kept(any_shell: Shell) -> None:
    mark = f"{uuid.uuid4().int % 10**9}"
    command = (
        f"echo before; sleep 9{mark} & (setsid sleep 9{mark} &) ; trap '' TERM; sleep 9{mark}; sleep 9{mark}"
    )
    began = time.monotonic()
    result = await any_shell.result(command, timeout_s=1)
    assert time.monotonic() - began < 30
    assert result.text.index("before") < result.text.index("Timed out after 1 s")
    assert result.outcome == "unknown"
    assert running_with(f"9{mark}") == []


@pytest.mark.spec("TLS-249")
async def test_a_command_is_asked_to_end_before_it_is_killed(any_shell: Shell) -> None:
    command = "trap 'echo goodbye; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    result = await any_shell.result(command, timeout_s=2)
    assert "goodbye" in result.text


@pytest.mark.spec("TLS-257", "TLS-310")
async def test_the_answer_comes_when_the_shell_has_ended_and_nothing_survives_it(any_shell: Shell) -> None:
    mark = f"{uuid.uuid4().int % 10**9}"
    daemon = (
        "import os,time,sys\n"
        "if os.fork(): os._exit(0)\n"
        "os.setsid()\n"
        "if os.fork(): os._exit(0)\n"
        f"time.sleep(8{mark})\n"
    )
    (any_shell.workspace / "daemon.py").write_text(daemon)
    began = time.monotonic()
    result = await any_shell.call(
        f"{PYTHON} -I -S daemon.py 8{mark}; sleep 8{mark} & "
        f"nohup setsid sleep 8{mark} >/dev/null 2>&1 & echo answered"
    )
    assert time.monotonic() - began < 30
    assert result.text == "answered\n"
    assert running_with(f"8{mark}") == []


@pytest.mark.spec("PIP-041", "PIP-136")
async def test_a_cancelled_command_ends_and_keeps_what_it_had_printed(any_shell: Shell) -> None:
    mark = f"{uuid.uuid4().int % 10**9}"
    work = asyncio.create_task(any_shell.call(f"echo so far; sleep 7{mark} & sleep 7{mark}"))
    await until(lambda: len(running_with(f"sleep\0{'7'}{mark}")) == 2)
    work.cancel()
    result = await work
    assert running_with(f"7{mark}") == []
    assert result.text.startswith("so far\n")
    assert "was cancelled after" in result.text
    assert (result.is_error, result.outcome) == (True, "unknown")


async def test_a_second_cancellation_loses_nothing_either(plain: Shell) -> None:
    mark = f"{uuid.uuid4().int % 10**9}"
    work = asyncio.create_task(plain.call(f"trap '' TERM; echo so far; sleep 7{mark}; sleep 7{mark}"))
    await until(lambda: len(running_with(f"sleep\0{'7'}{mark}")) == 1)
    for _ in range(3):
        work.cancel()
        await asyncio.sleep(0.05)
    assert "so far" in (await work).text
    assert running_with(f"7{mark}") == []


async def test_cancelling_before_the_command_has_begun_leaves_nothing_behind(plain: Shell) -> None:
    mark = f"{uuid.uuid4().int % 10**9}"
    for _ in range(5):
        work = asyncio.create_task(plain.call(f"sleep 6{mark}"))
        await asyncio.sleep(0)
        work.cancel()
        await asyncio.wait({work})
    await until(lambda: running_with(f"6{mark}") == [])


@pytest.mark.spec("TLS-311")
@pytest.mark.parametrize("form", ["none", "bubblewrap", "landlock"])
async def test_when_the_service_is_killed_its_commands_end(
    form: str, tmp_path: Path, probed: dict[str, tuple[ShellSandbox, SandboxReport]]
) -> None:
    if form != "none" and probed[form][1].form is None:
        pytest.skip(f"NOT PROVEN HERE: {probed[form][1].reason}")
    mark = f"{uuid.uuid4().int % 10**9}"
    source = f"""
import asyncio
from services.common.toolhost.contract import *
from services.tools.shell.sandbox.shell_sandbox import ShellSandbox
from services.tools.shell.shell_run import ShellRun
async def unheard(text, details=None): pass
async def main():
    sandbox = ShellSandbox(forms={[form] if form != "none" else []!r})
    await sandbox.probe()
    grant = WorkspaceGrant(root={str(tmp_path)!r}, shell_network={form == "none"!r})
    context = CallContext("a", "c", "r", "k", grant)
    command = "sleep 5{mark} & setsid sleep 5{mark} & sleep 5{mark}"
    await ShellRun(sandbox).run(Run(context, {{"command": command}}, unheard))
asyncio.run(main())
"""
    service = subprocess.Popen([sys.executable, "-c", source])
    try:
        await until(lambda: len(running_with(f"sleep\0{'5'}{mark}")) == 3)
    finally:
        service.send_signal(signal.SIGKILL)
        service.wait()
    await until(lambda: running_with(f"5{mark}") == [])


@pytest.mark.spec("PIP-160")
async def test_too_many_processes_end_the_command_with_the_limit_named(any_shell: Shell) -> None:
    mark = f"{uuid.uuid4().int % 10**9}"
    limited = any_shell.granted(limits=ShellLimits(cpu_seconds=60, processes=16))
    # Each starts two more, eight times over: bounded, so that a failing test harms nobody.
    (any_shell.workspace / "grow.sh").write_text(
        f'[ "$1" -gt 0 ] || exec sleep 4{mark}\nsh grow.sh $(($1 - 1)) & sh grow.sh $(($1 - 1)) & wait\n'
    )
    result = await limited.result("sh grow.sh 8")
    assert "the limit of 16 processes" in result.text
    assert result.details["ended"] == "processes"
    assert running_with(f"4{mark}") == []
    assert running_with("grow.sh") == []
    assert (await limited.call("echo the service goes on")).text == "the service goes on\n"


@pytest.mark.spec("PIP-160")
async def test_processor_time_is_counted_over_the_whole_command(any_shell: Shell) -> None:
    limited = any_shell.granted(limits=ShellLimits(cpu_seconds=1, processes=64))
    for command in ("while :; do :; done", "(while :; do :; done) & (while :; do :; done) & wait"):
        result = await limited.result(command)
        assert "the limit of 1 seconds of processor time" in result.text
        assert result.details["ended"] == "cpu"


@pytest.mark.spec("PIP-160")
async def test_one_file_and_one_process_have_their_size(any_shell: Shell) -> None:
    limits = ShellLimits(cpu_seconds=60, processes=64, file_bytes=1_048_576, memory_bytes=512 * 1024**2)
    limited = any_shell.granted(limits=limits)
    result = await limited.result("head -c 20000000 /dev/zero > big")
    assert "the limit of 1 MB for one file" in result.text
    assert (any_shell.workspace / "big").stat().st_size <= 1_048_576
    result = await limited.result(f"{PYTHON} -I -S -c 'bytearray(2**30)'")
    assert "the limit of 512 MB of memory" in result.text


@pytest.mark.spec("TLS-295")
async def test_no_descriptor_of_the_service_is_inherited(any_shell: Shell) -> None:
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    try:
        source = "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd')))"
        result = await any_shell.call(f'{PYTHON} -I -S -c "{source}"')
    finally:
        os.close(reader)
        os.close(writer)
    # The fourth is the listing's own.
    assert result.text == "[0, 1, 2, 3]\n"


@pytest.mark.spec("TLS-314", "FLD-054")
async def test_files_get_the_mode_that_others_can_work_with(any_shell: Shell) -> None:
    await any_shell.call("echo a > file; mkdir folder")
    assert (any_shell.workspace / "file").stat().st_mode & 0o777 == 0o664
    assert (any_shell.workspace / "folder").stat().st_mode & 0o777 == 0o775
    assert (any_shell.workspace / "file").stat().st_uid == os.geteuid()


async def test_a_workspace_that_is_gone_is_named(plain: Shell) -> None:
    with pytest.raises(ToolError) as caught:
        await plain.granted(root="/no/such/place").call("true")
    assert "/no/such/place" in caught.value.text


async def test_people_see_what_is_printed_while_it_runs(plain: Shell) -> None:
    seen: list[str] = []
    there = asyncio.Event()

    async def watch(text: str, details: object = None) -> None:
        seen.append(text)
        there.set()

    run = Run(plain.context(), {"command": "echo first; sleep 30"}, watch)
    work = asyncio.create_task(ShellRun(plain.sandbox).run(run))
    async with asyncio.timeout(30):
        await there.wait()
    work.cancel()
    await work
    assert seen[0] == "first\n"


@pytest.mark.spec("PIP-129")
async def test_a_watcher_that_fails_changes_nothing(plain: Shell) -> None:
    async def broken(text: str, details: object = None) -> None:
        raise RuntimeError("gone")

    run = Run(plain.context(), {"command": "echo a; sleep 1; echo b"}, broken)
    assert (await ShellRun(plain.sandbox).run(run)).text == "a\nb\n"


@pytest.mark.spec("TLS-016", "TLS-262", "TLS-266", "TLS-267", "TLS-268", "TLS-270")
async def test_the_lists_decide_before_anybody_is_asked(plain: Shell) -> None:
    listed = plain.granted(
        ask_patterns=["rm -rf", "sudo "], allow_patterns=["git status", "*"], deny_patterns=["create table"]
    )
    ask = await listed.judge("RM  -RF build")
    assert isinstance(ask, Ask)
    assert ask.rule == "rm -rf"
    assert "“rm -rf”" in ask.reason
    assert isinstance(await listed.judge("git status"), Routine)
    assert isinstance(await listed.judge("git status; ls"), NoOpinion)
    refusal = await listed.judge("psql -c 'CREATE TABLE t()'")
    assert isinstance(refusal, Refuse)
    assert "“create table”" in refusal.text
    assert "Say what is needed and why" in refusal.text


@pytest.mark.spec("TLS-266", "PIP-127")
async def test_a_denied_command_does_not_run_with_no_gate_in_front(plain: Shell) -> None:
    with pytest.raises(ToolError) as caught:
        await plain.granted(deny_patterns=["touch"]).call("tou''ch ran")
    assert caught.value.refused
    assert not (plain.workspace / "ran").exists()


@pytest.mark.spec("TLS-284", "TLS-276")
async def test_without_a_working_sandbox_the_command_is_refused_and_has_not_run(plain: Shell) -> None:
    for fields in ({"shell_network": False}, {"shell_write_paths": ["out"]}):
        confined = plain.granted(**fields)
        verdict = await confined.judge("touch ran")
        assert isinstance(verdict, Refuse)
        with pytest.raises(ToolError) as caught:
            await confined.call("touch ran")
        assert caught.value.refused
        assert "No sandbox works here" in caught.value.text
    assert not (plain.workspace / "ran").exists()
    assert (await plain.call("echo unconfined")).text == "unconfined\n"
