"""Cards: options and spend of a conversation, and what a script did."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from .conftest import say
from .stub.plans import Call, Text, plan
from .stub.server import StubCrew
from .stub.shapes import shape


@pytest.mark.spec("GTW-218")
def test_options_change_the_conversation_and_revoke_what_was_allowed(stub: StubCrew, page: Page) -> None:
    talk = stub.talk("Plain", 2)
    stub.look(
        lambda api: api.state.talks[talk].head.update(
            auto_approve=["workspace_write", "shell_run:git status"],
            grants=[shape("Grant", allows="workspace_write", uses=3)],
        )
    )
    page.goto(f"{stub.address}/#/c/{talk}")
    page.get_by_role("button", name="Options").click()
    expect(page.locator(".options-grants li").first).to_contain_text("let 3 calls through")
    page.get_by_role("switch", name="Autonomous").click()
    expect(page.get_by_role("switch", name="Autonomous")).to_be_checked()
    page.get_by_role("button", name="Revoke workspace_write").click()
    expect(page.get_by_role("button", name="Revoke workspace_write")).to_have_count(0)
    head = stub.look(lambda api: dict(api.state.talks[talk].head))
    assert head["autonomous"] is True
    assert head["auto_approve"] == ["shell_run:git status"]
    with page.expect_download() as download:
        page.get_by_role("button", name="Export as Markdown").click()
    assert download.value.suggested_filename == "Plain.md"
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Options")).to_be_focused()


def test_a_card_closes_by_escape_and_by_an_outside_press_and_gives_the_focus_back(
    stub: StubCrew, page: Page
) -> None:
    page.goto(f"{stub.address}/#/c/{stub.talk('Plain', 2)}")
    for name in ("Spend", "Options", "Crew"):
        pill = page.locator(".page-pills").get_by_role("button", name=name)
        for close in (
            lambda: page.keyboard.press("Escape"),
            lambda: page.locator(".page-title").click(),
        ):
            pill.click()
            card = page.get_by_role("dialog", name=name)
            expect(card).to_be_visible()
            close()
            expect(card).to_have_count(0)
            expect(pill).to_be_focused()
    page.get_by_role("button", name="Crew").click()
    page.locator(".composer-text").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(".composer-text")).to_be_focused()


@pytest.mark.spec("GTW-229")
@pytest.mark.parametrize(
    ("measures", "words"),
    [
        ((36_000, 120), "Received 36,000 characters, printed 120."),
        ((None, None), "Received — characters, printed —."),
    ],
)
def test_a_script_lists_its_calls_live_and_then_what_it_received_and_printed(
    stub: StubCrew, page: Page, measures: tuple[int | None, int | None], words: str
) -> None:
    calls = [
        {"name": "workspace_read", "arguments": {"path": "a.md"}, "ok": True, "output": "x", "ms": 3},
        {
            "name": "workspace_read",
            "arguments": {"path": "b.md"},
            "ok": False,
            "output": "no such file",
            "ms": 1,
        },
    ]
    stub.plan(
        plan(
            Call("tool_script", {"code": "print(1)"}, "1", hold="end", nested=calls, measures=measures),
            Text("Over."),
        )
    )
    say(page, "Work")
    running = page.locator(".call-running .nested li")
    expect(running).to_have_count(2)
    expect(running.nth(0)).to_contain_text("a.md")
    expect(running.nth(1)).to_contain_text("no such file")
    stub.release("end")
    card = page.locator(".call-ok", has_text="tool_script")
    for _ in range(2):
        card.get_by_role("button").first.click()
        expect(card.locator(".nested li")).to_have_count(2)
        expect(card).to_contain_text(words)
        page.reload()
