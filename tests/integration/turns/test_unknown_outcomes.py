"""A writing call that may have taken effect is not made again without a person (FLD-084)."""

from __future__ import annotations

import asyncio

import pytest

from tests.fixtures.crew import Crew, names_of, until

COMMAND = "touch begun; until [ -e go ]; do sleep 0.05; done; echo over >> effects"
CALL = f'/tool shell_run {{"command": "{COMMAND}"}}'


async def cut_off(crew: Crew, conversation_id: str) -> None:
    """Begin the call, restart the orchestrator under it, and wait for the turn's end."""
    sending = asyncio.create_task(crew.send(conversation_id, CALL))

    async def begun() -> bool:
        return (crew.workspace / "begun").exists()

    await until(begun)
    await crew.end("orchestrator")
    await asyncio.wait({sending})
    sending.exception()
    await crew.start("orchestrator")

    async def over() -> bool:
        return (await crew.last_run(conversation_id)).status == "done"

    await until(over)


@pytest.mark.spec("FLD-084")
async def test_the_same_call_after_a_restart_asks_until_its_outcome_is_known(crew: Crew) -> None:
    conversation_id = await crew.open(autonomous=True)
    await cut_off(crew, conversation_id)
    note = next(m for m in (await crew.get(conversation_id)).messages if m.role == "tool")
    assert "may or may not have taken effect" in note.content
    await crew.end("orchestrator")
    await crew.start("orchestrator")

    other = CALL.replace("over", "other")
    (crew.workspace / "go").touch()
    assert names_of(await crew.send(conversation_id, other))[-1] == "done"

    # Written with other blanks it is the same call all the same.
    events = await crew.send(conversation_id, CALL.replace('": "', '":    "'))
    assert names_of(events)[-1] == "approval_required"
    approval = events[-1].approval_required.approval
    assert "may already have taken effect" in approval.reason
    assert not approval.may_always
    assert (crew.workspace / "effects").read_text() == "other\n"

    assert names_of(await crew.decide(approval.id, approve=False))[-1] == "done"
    events = await crew.send(conversation_id, CALL)
    assert names_of(events)[-1] == "approval_required", "a refusal does not make the outcome known"
    await crew.decide(events[-1].approval_required.approval.id, approve=True)
    assert (crew.workspace / "effects").read_text() == "other\nover\n"

    assert names_of(await crew.send(conversation_id, CALL))[-1] == "done"


async def test_another_conversation_is_not_asked(crew: Crew) -> None:
    await cut_off(crew, await crew.open(autonomous=True))
    (crew.workspace / "go").touch()
    assert names_of(await crew.send(await crew.open(autonomous=True), CALL))[-1] == "done"
