"""Scripts that are cut: their interpreter, their caller, their service; and many at once."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable

import grpc
import grpc.aio
import pytest
from crew.v1 import script_sandbox_pb2 as pb

from tests.fixtures.script_sandbox import Caller, SandboxProcess, plain_answer

SECONDS = 30.0
BUSY = "x = [str(i) for i in range(300000)]\nfor i in range(100000): sorted(x)"


@pytest.fixture
async def own_caller(own_sandbox: SandboxProcess) -> AsyncIterator[Caller]:
    caller = Caller(own_sandbox)
    yield caller
    await caller.close()


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


def working(sandbox: SandboxProcess) -> list[int]:
    """Workers that have used noticeable processor time."""
    found = []
    for pid in sandbox.children():
        try:
            with open(f"/proc/{pid}/stat") as stat:
                fields = stat.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[11]) + int(fields[12]) > 20:
            found.append(pid)
    return found


@pytest.mark.spec("SCR-256", "SCR-353", "SCR-262")
async def test_a_killed_interpreter_ends_its_script_alone(
    own_sandbox: SandboxProcess, own_caller: Caller
) -> None:
    running = asyncio.create_task(own_caller.run("print('lost')\n" + BUSY))
    await until(lambda: bool(working(own_sandbox)))
    for pid in working(own_sandbox):
        os.kill(pid, signal.SIGKILL)
    failed = (await running).failed
    assert (failed.kind, failed.cause, failed.printed) == (pb.SCRIPT_FAILURE_KIND_KILLED, "died", "")
    assert (await own_caller.run("print(1)")).printed == "1\n"


@pytest.mark.spec("SCR-255", "SCR-258")
@pytest.mark.parametrize("way", ["rpc", "message", "half_close"])
async def test_no_interpreter_outlives_its_caller(
    way: str, own_sandbox: SandboxProcess, own_caller: Caller
) -> None:
    await until(lambda: len(own_sandbox.children()) >= 4)
    call = own_caller.stub.Run()
    await call.write(pb.ToSandbox(start=pb.ScriptStart(script=BUSY)))
    await until(lambda: bool(working(own_sandbox)))
    (busy,) = working(own_sandbox)
    match way:
        case "rpc":
            call.cancel()
        case "message":
            await call.write(pb.ToSandbox(cancel=pb.CancelScript()))
        case _:
            await call.done_writing()
    await until(lambda: busy not in own_sandbox.children())
    if way != "rpc":
        assert [message.WhichOneof("message") async for message in call] == ["accepted"]
    assert (await own_caller.run("print(1)")).printed == "1\n"


@pytest.mark.spec("SCR-255")
async def test_a_waiting_script_ends_with_its_caller(own_sandbox: SandboxProcess, own_caller: Caller) -> None:
    call = own_caller.stub.Run()
    await call.write(pb.ToSandbox(start=pb.ScriptStart(script="tools.f()")))
    async for message in call:
        if message.HasField("tool_call"):
            break
    description = await own_caller.stub.Describe(pb.DescribeSandboxRequest())
    assert description.running == 1
    call.cancel()

    async def idle() -> bool:
        return (await own_caller.stub.Describe(pb.DescribeSandboxRequest())).running == 0

    async with asyncio.timeout(SECONDS):
        while not await idle():
            await asyncio.sleep(0.02)


@pytest.mark.spec("SCR-255")
async def test_a_killed_service_leaves_no_interpreter_and_its_caller_hears_of_it(
    own_sandbox: SandboxProcess, own_caller: Caller
) -> None:
    running = asyncio.create_task(own_caller.run(BUSY))
    await until(lambda: bool(working(own_sandbox)))
    children = own_sandbox.children()
    own_sandbox.kill()
    with pytest.raises(grpc.aio.AioRpcError) as lost:
        await running
    assert lost.value.code() == grpc.StatusCode.UNAVAILABLE
    await until(lambda: not any(os.path.exists(f"/proc/{pid}/exe") for pid in children))
    own_sandbox.start()
    async with asyncio.timeout(SECONDS):
        while True:
            try:
                assert (await own_caller.run("print(1)")).printed == "1\n"
                break
            except grpc.aio.AioRpcError:
                await asyncio.sleep(0.1)


@pytest.mark.spec("SCR-247")
async def test_every_script_has_an_interpreter_of_its_own(caller: Caller) -> None:
    assert (await caller.run("x = 1\nprint = 2")).finished
    told = await caller.run("try:\n    x\nexcept NameError:\n    print('fresh')\nif False: x = 2")
    assert told.printed == "fresh\n"


async def test_twenty_at_once_all_come_to_their_end(caller: Caller) -> None:
    script = "t = 0\nfor i in range(20000): t += i\nprint(t, tools.f(n=%d))"
    async with asyncio.timeout(120):
        told = await asyncio.gather(*(caller.run(script % number) for number in range(20)))
    assert [one.printed for one in told] == [f'199990000 f {{"n":{number}}}\n' for number in range(20)]


async def test_a_short_script_is_not_starved_by_busy_ones(caller: Caller) -> None:
    busy = [asyncio.create_task(caller.run(BUSY, limits=pb.ScriptLimits(cpu_seconds=3))) for _ in range(6)]
    async with asyncio.timeout(60):
        assert (await caller.run("print(1)")).printed == "1\n"
    assert not all(task.done() for task in busy)
    assert {(await task).failed.cause for task in busy} == {"cpu"}


@pytest.mark.spec("SCR-285")
async def test_a_script_goes_on_behind_its_last_call(caller: Caller) -> None:
    script = (
        "print('one')\na = tools.f(n=1)\nstore('k', a)\nxs = [a]\n"
        "def g(n):\n    return tools.f(n=n)\ntry:\n    xs.append(g(2))\nfinally:\n    print('two')\nprint(xs, load('k'))\n"
        "for i in range(23): tools.f(n=i)\ntry:\n    tools.f(n=99)\nexcept Exception: print('caught')"
    )
    whole = await caller.run(script, checkpoints=True)
    assert [one.seq for one in whole.checkpoints] == list(range(1, len(whole.requests) + 1))
    for place in (0, 1, 2, 10):
        rest = await caller.run(script, checkpoints=True, resume=whole.checkpoints[place].state)
        assert rest.accepted is not None
        assert rest.accepted.resumed
        assert rest.requests == whole.requests[place:]
        assert (rest.failed.cause, rest.failed.line, rest.failed.printed) == (
            *(whole.failed.cause, whole.failed.line, whole.failed.printed),
        )


@pytest.mark.spec("SCR-285")
async def test_a_script_goes_on_in_another_service(own_sandbox: SandboxProcess, own_caller: Caller) -> None:
    states: list[bytes] = []
    call = own_caller.stub.Run()
    script = "print('a')\ntools.f()\nprint('b')\ntools.g()\nprint('c')"
    await call.write(pb.ToSandbox(start=pb.ScriptStart(script=script, checkpoints=True)))
    async for message in call:
        if message.HasField("checkpoint"):
            states.append(message.checkpoint.state)
        if message.HasField("tool_call"):
            if message.tool_call.name == "g":
                break
            await call.write(plain_answer(message))
    own_sandbox.kill()
    own_sandbox.start()
    other = Caller(own_sandbox)
    told = await other.run(script, resume=states[-1])
    await other.close()
    assert told.printed == "a\nb\nc\n"
    assert [request.tool_call.name for request in told.requests] == ["g"]


async def test_a_stream_that_begins_with_something_else_is_refused(caller: Caller) -> None:
    for first in (pb.ToSandbox(call_result=pb.CallResult(seq=1)), pb.ToSandbox()):
        call = caller.stub.Run()
        await call.write(first)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            async for _ in call:
                pass
        assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.spec("SCR-267")
async def test_a_message_over_the_size_is_a_fault_of_the_call(caller: Caller) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as fault:
        await caller.run("#" * (17 * 1024 * 1024))
    # Refused by the sender's own side, which has the same ceiling, or by the receiver.
    assert fault.value.code() in (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.INTERNAL)
    assert (await caller.run("print(1)")).printed == "1\n"
