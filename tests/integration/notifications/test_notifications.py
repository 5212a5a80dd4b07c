"""What the owner is told: tools and hosts in trouble, requests that wait, each once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from uuid import uuid4

import grpc
import psycopg
import pytest
from crew.v1 import approvals_pb2, notifications_pb2, notifications_pb2_grpc, runs_pb2, system_pb2

from tests.fixtures.crew import Crew, http_status_of, running_crew, until
from tests.fixtures.fake_orchestrator import FakeOrchestrator
from tests.fixtures.gateway import Gateway, gateway_before
from tests.fixtures.postgres import ScratchDatabase

Notification = notifications_pb2.Notification


@pytest.fixture
async def before(crew: Crew) -> AsyncIterator[Gateway]:
    """A gateway before the crew."""
    address = crew.environ["MY_AGENT_ORCHESTRATOR_LISTEN"]
    async with gateway_before(address, crew.folder / "secrets", FakeOrchestrator()) as gateway:
        yield gateway


def tool(name: str, **arguments: object) -> str:
    return f"/tool {name} {json.dumps(arguments)}"


def stub(crew: Crew) -> notifications_pb2_grpc.NotificationsAsyncStub:
    """Client of crew.v1.Notifications."""
    found: notifications_pb2_grpc.NotificationsAsyncStub = crew.stub(notifications_pb2_grpc.NotificationsStub)
    return found


async def told(crew: Crew, **wanted: object) -> list[Notification]:
    """What the owner was told, oldest first."""
    reply = await stub(crew).List(notifications_pb2.ListNotificationsRequest(**wanted))
    return list(reversed(reply.notifications))


async def told_so_far(crew: Crew, count: int) -> list[Notification]:
    """Wait until so many notifications are there."""

    async def enough() -> bool:
        return len(await told(crew)) >= count

    await until(enough)
    return await told(crew)


def kinds(notifications: list[Notification]) -> list[tuple[str, str, str]]:
    return [(each.kind, each.cause, each.subject) for each in notifications]


async def fail(crew: Crew, conversation_id: str, times: int = 5) -> None:
    for _ in range(times):
        await crew.send(conversation_id, tool("workspace_read", path="missing.txt"))


async def succeed(crew: Crew, conversation_id: str, times: int = 10) -> None:
    (crew.workspace / "a.txt").write_text("x")
    for _ in range(times):
        await crew.send(conversation_id, tool("workspace_read", path="a.txt"))


FAILING = ("trouble", "failing", "workspace_read")
WELL = ("recovered", "failing", "workspace_read")


@pytest.mark.spec("PIP-113")
async def test_a_failing_tool_is_told_once_and_its_recovery_once_also_over_a_restart(crew: Crew) -> None:
    conversation_id = await crew.open(autonomous=True)
    await fail(crew, conversation_id, 4)
    assert await told(crew) == []
    await fail(crew, conversation_id, 1)
    (trouble,) = await told_so_far(crew, 1)
    assert kinds([trouble]) == [FAILING]
    assert "workspace_read" in trouble.text
    assert not trouble.HasField("over_at")
    shown = await crew.system.Connections(system_pb2.ConnectionsRequest())
    assert [(one.tool, one.cause, one.note) for one in shown.troubles] == [
        ("workspace_read", "failing", trouble.text)
    ]
    await fail(crew, conversation_id, 3)
    await crew.end("orchestrator")
    await crew.start("orchestrator")
    await fail(crew, conversation_id, 2)
    await succeed(crew, conversation_id)
    found = await told_so_far(crew, 2)
    assert kinds(found) == [FAILING, WELL]
    assert found[0].HasField("over_at")
    assert not (await crew.system.Connections(system_pb2.ConnectionsRequest())).troubles
    # A second time is a second notification.
    await fail(crew, conversation_id)
    assert kinds(await told_so_far(crew, 3)) == [FAILING, WELL, FAILING]


@pytest.mark.spec("PIP-155")
async def test_commands_that_run_into_a_limit_are_told_of(database: ScratchDatabase) -> None:
    async with running_crew(database, agent="shell_limits: {file_bytes: 1000}\n") as crew:
        conversation_id = await crew.open(autonomous=True)
        for n in range(3):
            await crew.send(conversation_id, tool("shell_run", command=f"head -c 100000 /dev/zero > big{n}"))
        (trouble,) = await told_so_far(crew, 1)
        assert kinds([trouble]) == [("trouble", "limits", "shell_run")]


@pytest.mark.spec("PIP-113")
async def test_a_host_that_is_down_is_told_once_and_its_return_once(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.orchestrator.notifications.hosts.DOWN_SECONDS", 0.5)
    await crew.end("tools")
    (trouble,) = await told_so_far(crew, 1)
    assert kinds([trouble]) == [("trouble", "host_down", "tools")]
    await crew.start("tools")
    found = await told_so_far(crew, 2)
    assert kinds(found) == [
        ("trouble", "host_down", "tools"),
        ("recovered", "host_down", "tools"),
    ]


@pytest.mark.spec("PIP-113")
async def test_watchers_of_the_activity_are_told_of_what_is_new_and_what_is_read(crew: Crew) -> None:
    frames: list[runs_pb2.NotificationFrame] = []

    async def watch() -> None:
        async for frame in crew.runs.Activity(runs_pb2.ActivityRequest()):
            if frame.HasField("snapshot"):
                watching.set()
            if frame.HasField("notification"):
                frames.append(frame.notification)

    async def seen(unread: int) -> bool:
        return bool(frames) and frames[-1].unread == unread

    watching = asyncio.Event()
    task = asyncio.create_task(watch())
    async with asyncio.timeout(30):
        await watching.wait()
    conversation_id = await crew.open()
    await crew.send(conversation_id, tool("workspace_write", path="a.txt", content="x"))
    await until(lambda: seen(1))
    assert frames[-1].notification.kind == "approval"
    assert frames[-1].notification.conversation_id == conversation_id
    reply = await stub(crew).MarkRead(notifications_pb2.MarkNotificationsReadRequest())
    assert reply.unread == 0
    await until(lambda: seen(0))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.spec("FLD-024")
async def test_a_request_is_delivered_when_a_surface_says_so_and_else_shows_that_it_is_not(
    crew: Crew, database: ScratchDatabase
) -> None:
    conversation_id = await crew.open()
    events = await crew.send(conversation_id, tool("workspace_write", path="a.txt", content="x"))
    card = events[-1].approval_required.approval
    assert card.delivery == "waiting"

    async def delivery() -> str:
        waiting = await crew.approvals.ListWaiting(approvals_pb2.ListWaitingApprovalsRequest())
        return str(waiting.approvals[0].delivery)

    assert await delivery() == "waiting"
    await until_overdue(database)

    async def given_up() -> bool:
        return await delivery() == "not_delivered"

    await until(given_up)
    assert [each.delivery for each in await told(crew)] == ["not_delivered"]
    # A page that opens later shows it after all.
    confirming = notifications_pb2.ConfirmNotificationsRequest(ids=[card.id], surface="web")
    assert (await stub(crew).Confirm(confirming)).confirmed == 1
    assert await delivery() == "delivered"
    (notification,) = await told(crew)
    assert (notification.delivery, notification.delivered_by) == ("delivered", "web")
    assert (await stub(crew).Confirm(confirming)).confirmed == 0, "the first surface counts"


@pytest.mark.spec("FLD-024")
async def test_what_was_confirmed_in_time_is_not_given_up(crew: Crew, database: ScratchDatabase) -> None:
    conversation_id = await crew.open()
    await crew.send(conversation_id, tool("workspace_write", path="a.txt", content="x"))
    (notification,) = await told(crew)
    await stub(crew).Confirm(
        notifications_pb2.ConfirmNotificationsRequest(ids=[notification.id], surface="web")
    )
    other = await crew.open()
    await crew.send(other, tool("workspace_write", path="b.txt", content="x"))
    await until_overdue(database)

    async def second_given_up() -> bool:
        return (await told(crew))[1].delivery == "not_delivered"

    await until(second_given_up)
    assert (await told(crew))[0].delivery == "delivered"


async def until_overdue(database: ScratchDatabase) -> None:
    """Let the sixty seconds pass."""
    async with await psycopg.AsyncConnection.connect(database.url, autocommit=True) as connection:
        await connection.execute("update notifications set confirm_by = now() - interval '1 second'")


@pytest.mark.spec("FLD-024", "PIP-113")
async def test_a_decided_request_is_read_and_over_and_one_that_ran_out_is_only_over(
    crew: Crew, database: ScratchDatabase
) -> None:
    decided, expired = await crew.open(), await crew.open()
    for conversation_id in (decided, expired):
        await crew.send(conversation_id, tool("workspace_write", path="a.txt", content="x"))
    await crew.decide(await crew.pending(decided), approve=False)
    async with await psycopg.AsyncConnection.connect(database.url, autocommit=True) as connection:
        await connection.execute("update approvals set expires_at = now() where status = 'pending'")

    async def over() -> bool:
        return all(each.HasField("over_at") for each in await told(crew))

    await until(over)
    assert [each.HasField("read_at") for each in await told(crew)] == [True, False]
    assert len(await told(crew, unread=True)) == 1


@pytest.mark.spec("PIP-113")
async def test_a_page_lists_and_reads_them_over_http(before: Gateway, crew: Crew) -> None:
    for _ in range(3):
        await crew.send(await crew.open(), tool("workspace_write", path="a.txt", content="x"))
    body = (await before.http.get("/api/notifications?limit=2")).json()
    assert body["unread"] == 3
    assert len(body["notifications"]) == 2
    newest = body["notifications"][0]
    assert (newest["kind"], newest["subject"], newest["read_at"]) == ("approval", "workspace_write", None)
    answer = await before.http.post("/api/notifications/read", json={"ids": [newest["id"]]})
    assert answer.json() == {"unread": 2}
    listed = (await before.http.get("/api/notifications?unread=true")).json()["notifications"]
    assert newest["id"] not in [each["id"] for each in listed]
    answer = await before.http.post(
        "/api/notifications/confirm", json={"ids": [newest["approval_id"]], "surface": "web"}
    )
    assert answer.json() == {"confirmed": 1}
    assert (await before.http.post("/api/notifications/read", json={})).json() == {"unread": 0}


@pytest.mark.parametrize(
    ("method", "request_"),
    [
        ("List", notifications_pb2.ListNotificationsRequest(limit=0)),
        ("List", notifications_pb2.ListNotificationsRequest(limit=501)),
        ("MarkRead", notifications_pb2.MarkNotificationsReadRequest(ids=["x"])),
        ("MarkRead", notifications_pb2.MarkNotificationsReadRequest(ids=[str(uuid4())] * 501)),
        ("Confirm", notifications_pb2.ConfirmNotificationsRequest(ids=[str(uuid4())])),
        ("Confirm", notifications_pb2.ConfirmNotificationsRequest(surface="web")),
        ("Confirm", notifications_pb2.ConfirmNotificationsRequest(ids=["'"], surface="web")),
        ("Confirm", notifications_pb2.ConfirmNotificationsRequest(ids=[str(uuid4())], surface="a\n")),
    ],
)
async def test_requests_that_mean_nothing_are_refused(crew: Crew, method: str, request_: object) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await getattr(stub(crew), method)(request_)
    assert http_status_of(refused.value)[0] == 422


async def test_a_removed_conversation_takes_its_notifications_along(crew: Crew) -> None:
    from crew.v1 import conversations_pb2

    conversation_id = await crew.open()
    await crew.send(conversation_id, tool("workspace_write", path="a.txt", content="x"))
    assert len(await told(crew)) == 1
    await crew.decide(await crew.pending(conversation_id), approve=False)
    await crew.conversations.Delete(conversations_pb2.DeleteConversationRequest(id=conversation_id))
    assert await told(crew) == []
