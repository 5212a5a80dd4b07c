"""Tools that act in two phases: a preview and a token, then the act with that token (PIP-091)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from services.common.times import utc_now
from services.common.toolhost.contract import CallContext, Run, ToolError, WorkspaceGrant
from services.common.toolhost.phases import TOKEN_SECONDS, Phases
from services.orchestrator.calls.contract import ApprovalDraft, Completed, Paused
from services.orchestrator.store.records import Approval
from tests.integration.calls.test_remote_host import Crew, crew
from tests.unit.orchestrator.calls.parts import approval, call, conversation

__all__ = ["crew"]

SEND = call("c1", "send", '{"text":"hello"}')


def approved(draft: ApprovalDraft, **fields: Any) -> Approval:
    """The decision of a person who saw `draft` just now."""
    whole = approval(SEND, "approved", draft.arguments_json, token=draft.token, created_at=utc_now())
    return replace(whole, **fields)


async def previewed(crew: Crew, **fields: Any) -> ApprovalDraft:
    """What a person is shown of `SEND`."""
    end = await crew.run(SEND, conversation=conversation(), **fields)
    assert isinstance(end, Paused)
    return end.ask


@pytest.mark.spec("PIP-091")
async def test_the_card_shows_the_preview_and_the_token_makes_it_run_once(crew: Crew) -> None:
    draft = await previewed(crew)
    assert draft.preview == "To send: hello"
    assert draft.token
    assert crew.process.marks("send") == []
    end = await crew.run(SEND, decisions={"c1": approved(draft)})
    assert isinstance(end, Completed)
    assert end.outcomes[0].text == "hello"
    # The same key again answers from the record and sends nothing.
    again = await crew.run(SEND, decisions={"c1": approved(draft)})
    assert isinstance(again, Completed)
    assert crew.process.marks("send") == ["c1"]


@pytest.mark.spec("PIP-091")
async def test_an_autonomous_call_goes_through_both_phases(crew: Crew) -> None:
    end = await crew.run(SEND, conversation=conversation(autonomous=True))
    assert isinstance(end, Completed)
    assert end.outcomes[0].ok
    assert crew.process.marks("send") == ["c1"]


@pytest.mark.spec("PIP-091")
@pytest.mark.parametrize("age", [TOKEN_SECONDS + 1, 7 * 24 * 3600])
async def test_an_approval_after_ten_minutes_goes_back_to_a_new_preview(crew: Crew, age: int) -> None:
    draft = await previewed(crew)
    late = approved(draft, created_at=utc_now() - timedelta(seconds=age))
    end = await crew.run(SEND, decisions={"c1": late}, conversation=conversation(autonomous=True))
    assert isinstance(end, Paused)
    assert end.ask.preview == "To send: hello"
    assert crew.process.marks("send") == []
    assert isinstance(await crew.run(SEND, decisions={"c1": approved(end.ask)}), Completed)
    assert crew.process.marks("send") == ["c1"]


@pytest.mark.spec("PIP-091")
@pytest.mark.parametrize("judge", ["hang", "fail", "routine", "no preview"])
async def test_without_a_preview_a_person_is_asked_and_nothing_is_sent(
    crew: Crew, judge: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.orchestrator.hosts.remote.JUDGE_SECONDS", 0.5)
    asked = call("c1", "send", json.dumps({"text": "hello", "judge": judge}))
    end = await crew.run(asked, conversation=conversation(autonomous=True))
    assert isinstance(end, Paused)
    assert end.ask.preview == ""
    decision = approved(end.ask)
    end = await crew.run(asked, decisions={"c1": decision})
    assert isinstance(end, Completed)
    assert not end.outcomes[0].ok
    assert "preview" in end.outcomes[0].text
    assert crew.process.marks("send") == []


@pytest.mark.spec("PIP-091")
async def test_a_failed_second_phase_is_not_repeated(crew: Crew) -> None:
    waiting = call("c1", "send", '{"text":"hello","wait":true}')
    running = asyncio.create_task(crew.run(waiting, conversation=conversation(autonomous=True)))
    await crew.process.marked("send")
    await crew.process.kill()
    await crew.process.start()
    end = await running
    assert isinstance(end, Completed)
    (outcome,) = end.outcomes
    assert (outcome.ok, outcome.outcome) == (False, "unknown")
    assert "preview is shown again" in outcome.text
    assert crew.process.marks("send") == ["c1"]


@pytest.mark.spec("PIP-091")
async def test_a_token_of_a_host_that_restarted_sends_nothing(crew: Crew) -> None:
    draft = await previewed(crew)
    await crew.process.kill()
    await crew.process.start()
    end = await crew.run(SEND, decisions={"c1": approved(draft)})
    assert isinstance(end, Completed)
    assert (end.outcomes[0].ok, end.outcomes[0].outcome) == (False, "not_started")
    assert crew.process.marks("send") == []


class Clock:
    """Seconds that the test moves."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.spec("PIP-091", "PIP-092")
@pytest.mark.parametrize(
    ("changed", "arguments", "seconds", "holds"),
    [
        ({}, {"to": "a"}, 0, True),
        ({}, {"to": "a"}, 599, True),
        ({}, {"to": "a"}, 601, False),
        ({}, {"to": "b"}, 0, False),
        ({}, {"to": "a", "cc": "b"}, 0, False),
        ({"call_id": "other"}, {"to": "a"}, 0, False),
        ({"conversation_id": "other"}, {"to": "a"}, 0, False),
        ({"agent_id": "other"}, {"to": "a"}, 0, False),
    ],
)
def test_a_token_holds_for_one_call_with_these_arguments(
    changed: Mapping[str, str], arguments: Mapping[str, Any], seconds: int, holds: bool, tmp_path: Path
) -> None:
    clock = Clock()
    phases = Phases("send", clock=clock)
    context = CallContext("agent", "conv", "run", "call", WorkspaceGrant(str(tmp_path)))
    token = phases.token(context, {"to": "a"})
    clock.now += seconds
    run = Run(replace(context, **changed), arguments, _silent, token)
    if holds:
        phases.check(run)
        return
    with pytest.raises(ToolError, match="preview"):
        phases.check(run)


@pytest.mark.spec("PIP-091")
@pytest.mark.parametrize(
    "token", ["", ".", "9999999999.", "9999999999." + "0" * 64, "x" * 9999, "٣.é", "-1.0"]
)
def test_a_made_up_token_holds_for_nothing(token: str, tmp_path: Path) -> None:
    context = CallContext("agent", "conv", "run", "call", WorkspaceGrant(str(tmp_path)))
    with pytest.raises(ToolError):
        Phases("send").check(Run(context, {}, _silent, token))


async def _silent(text: str, details: Mapping[str, Any] | None = None) -> None:
    """A progress report that nobody reads."""
