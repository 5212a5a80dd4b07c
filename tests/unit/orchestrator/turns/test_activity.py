import pytest
from crew.v1 import runs_pb2

from services.orchestrator.turns.activity import FRAME_LIMIT, Activity


def run(run_id: str, status: str = "running") -> runs_pb2.Run:
    return runs_pb2.Run(id=run_id, conversation_id="c", status=status)


@pytest.mark.spec("TRN-287", "GTW-137", "GTW-140")
async def test_a_watcher_begins_with_every_live_run() -> None:
    activity = Activity()
    activity.run_changed(run("a"))
    activity.run_changed(run("b", "awaiting_approval"))
    activity.run_changed(run("over", "running"))
    activity.run_changed(run("over", "done"))
    frames = activity.frames()
    snapshot = (await anext(frames)).snapshot
    assert [each.id for each in snapshot.runs] == ["a", "b"]
    activity.run_changed(run("a", "done"))
    assert (await anext(frames)).run.run.status == "done"
    await frames.aclose()
    assert activity.watchers == 0


@pytest.mark.spec("TRN-288", "GTW-139")
async def test_a_frame_is_a_copy() -> None:
    activity = Activity()
    message = run("a")
    frames = activity.frames()
    await anext(frames)
    activity.run_changed(message)
    message.summary = "changed later"
    assert (await anext(frames)).run.run.summary == ""


@pytest.mark.spec("TRN-289", "GTW-138")
async def test_a_watcher_that_stops_reading_is_cut_off_and_no_other() -> None:
    activity = Activity()
    slow, reading = activity.frames(), activity.frames()
    await anext(slow)
    await anext(reading)
    received = 0
    for n in range(FRAME_LIMIT + 10):
        activity.conversation_changed(str(n))
        assert (await anext(reading)).conversation.conversation_id == str(n)
    assert activity.watchers == 1
    async for _ in slow:
        received += 1
    assert received == FRAME_LIMIT
