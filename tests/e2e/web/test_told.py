"""What the owner is told without asking, what a second model said, and a run as a file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from .conftest import OpenPage, say
from .stub.plans import Ask, Text, plan
from .stub.server import StubCrew
from .stub.shapes import shape


def _wait_for_watcher(stub: StubCrew) -> None:
    """Until the page follows the activity stream."""
    end = time.monotonic() + 30
    while not stub.look(lambda api: api.state.watchers):
        assert time.monotonic() < end, "nobody watches"
        time.sleep(0.05)


def _tell(stub: StubCrew, text: str, **values: Any) -> None:
    def work() -> None:
        records = stub.api.records
        told = records.told(text, **values)
        stub.api.state.tell_activity("notification", notification=told, unread=records.unread())

    stub.on_loop(work)


def test_trouble_stands_in_a_bar_and_behind_the_bell_until_seen(stub: StubCrew, page: Page) -> None:
    bell = page.get_by_role("button", name="Notifications", exact=True)
    expect(bell).to_be_visible()
    _tell(stub, "The host tools does not answer.")
    bar = page.locator(".bar", has_text="The host tools does not answer.")
    expect(bar).to_be_visible()
    expect(page.get_by_role("button", name="Notifications, 1 new")).to_be_visible()
    expect(page.locator("[data-live=polite]")).to_have_text("The host tools does not answer.")
    bar.get_by_role("button", name="Seen").click()
    expect(bar).to_have_count(0)
    expect(bell).to_be_visible()
    assert stub.look(lambda api: api.records.unread()) == 0
    page.reload()
    bell.click()
    dialog = page.get_by_role("dialog", name="Notifications")
    expect(dialog).to_contain_text("The host tools does not answer.")
    page.keyboard.press("Escape")
    expect(bell).to_be_focused()


def test_an_older_list_that_comes_late_does_not_take_back_what_was_told(
    stub: StubCrew, open_page: OpenPage
) -> None:
    held: list[Any] = []

    def hold(route: Any) -> None:
        held.append(route)

    page = open_page()
    page.route("**/api/notifications?*", hold)
    page.reload()
    expect(page.locator(".start-title")).to_be_visible()
    _wait_for_watcher(stub)
    _tell(stub, "The host tools does not answer.")
    bell = page.get_by_role("button", name="Notifications, 1 new")
    expect(bell).to_be_visible()
    for route in list(held):
        route.fulfill(json=shape("ListNotificationsReply"))
    # It is asked for again, and only that answer counts.
    with page.expect_response("**/api/notifications?*"):
        page.unroute("**/api/notifications?*")
    expect(bell).to_be_visible()
    expect(page.locator(".bar", has_text="The host tools does not answer.")).to_be_visible()


def test_opening_the_bell_reads_everything_and_leads_to_the_request(stub: StubCrew, page: Page) -> None:
    talk = stub.talk("Waiting", 2)
    _tell(stub, "Pong asks to run a command.", kind="approval", conversation_id=talk)
    _tell(stub, "It timed out.", over_at="2026-03-01T10:00:00.000Z")
    expect(page.locator(".bar")).to_have_count(0)
    page.get_by_role("button", name="Notifications, 2 new").click()
    dialog = page.get_by_role("dialog", name="Notifications")
    expect(dialog.locator(".notice")).to_have_count(2)
    expect(dialog.locator(".badge")).to_have_text(["New", "New"])
    expect(dialog.locator(".notice").first).to_contain_text("over")
    dialog.get_by_role("link", name="Open the conversation").click()
    expect(page.locator(".page-title")).to_have_text("Waiting")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert stub.look(lambda api: api.records.unread()) == 0


HIDE = """hidden => {
  const state = { configurable: true, get: () => (hidden ? "hidden" : "visible") };
  Object.defineProperty(document, "visibilityState", state);
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def test_only_a_page_that_can_be_seen_confirms_what_it_shows(stub: StubCrew, page: Page) -> None:
    page.evaluate(HIDE, True)
    _tell(stub, "Said to nobody.")
    expect(page.locator(".bar")).to_be_visible()
    assert stub.look(lambda api: api.records.confirmed) == []
    with page.expect_response("**/api/notifications/confirm"):
        page.evaluate(HIDE, False)
    stub.plan(plan(Ask("shell_run", {"command": "ls"}, "Run ls")))
    with page.expect_response("**/api/notifications/confirm"):
        say(page, "Work")
    approval = page.locator(".approval")
    expect(approval).to_be_visible()
    confirmed = stub.look(lambda api: list(api.records.confirmed))
    assert confirmed[0] == "note-1"
    assert confirmed[1].startswith("appr-")
    assert len(confirmed) == 2


def test_a_budget_near_its_end_stands_in_the_bar_until_seen(stub: StubCrew, page: Page) -> None:
    expect(page.get_by_role("button", name="Notifications", exact=True)).to_be_visible()
    _tell(stub, "The day's budget is nearly spent.", kind="budget", cause="nearly_spent", subject="crew.day")
    bar = page.locator(".bar", has_text="The day's budget is nearly spent.")
    bar.get_by_role("button", name="Seen").click()
    expect(bar).to_have_count(0)
    assert stub.look(lambda api: api.records.unread()) == 0


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        ("allow", "would allow it."),
        ("ask", "would ask you."),
        ("deny", "would refuse it."),
        ("none", "no answer in time"),
    ],
)
def test_the_card_says_what_a_second_model_thought(
    stub: StubCrew, page: Page, verdict: str, words: str
) -> None:
    stub.plan(
        plan(
            Ask("shell_run", {"command": "ls"}, "Run ls", review=(verdict, "Nobody asked\u202e for it.")),
            Text("Over."),
        )
    )
    say(page, "Work")
    review = page.locator(".approval-review")
    expect(review).to_contain_text("A second model (small:model)")
    expect(review).to_contain_text(words)
    expect(review.locator("q")).to_contain_text("Nobody asked[U+202E] for it.")


def test_a_review_is_a_step_of_the_run(stub: StubCrew, page: Page) -> None:
    stub.plan(plan(Text("Done.")))
    say(page, "Work")
    expect(page.locator(".reply")).to_be_visible()

    def add(api: Any) -> None:
        run = next(iter(api.state.runs.values()))
        step = shape(
            "RunStep",
            kind="review",
            index=9,
            ms=300,
            name="shell_run",
            verdict="deny",
            text="It deletes.",
            started_at=run["started_at"],
        )
        run["steps"].append(step)
        api.state.tell_step(run, step)

    stub.look(add)
    step = page.locator(".step-review")
    expect(step).to_contain_text("Judged by a second model")
    expect(step.locator(".badge")).to_have_text("refuses")
    expect(step).to_contain_text("It deletes.")


@pytest.mark.spec("GTW-241")
def test_a_run_is_downloaded_as_json_or_markdown_with_a_reminder(stub: StubCrew, page: Page) -> None:
    stub.plan(plan(Text("Read it.")))
    say(page, "Read")
    expect(page.locator(".reply")).to_be_visible()
    run = stub.look(lambda api: next(iter(api.state.runs)))
    page.goto(f"{stub.address}/#/manage/activity/{run}")
    panel = page.get_by_role("region", name="Keep this run")
    expect(panel).to_contain_text("read it before you share it")
    with page.expect_download() as download:
        panel.get_by_role("button", name="Download JSON").click()
    assert download.value.suggested_filename == f"run-{run}.json"
    assert Path(download.value.path()).read_text() == "json cut"
    panel.get_by_label("Whole results").check()
    with page.expect_download() as download:
        panel.get_by_role("button", name="Download Markdown").click()
    assert Path(download.value.path()).read_text() == "md whole"
    stub.look(lambda api: api.refuse.update({"/trajectory": [(503, "The store is away.")]}))
    panel.get_by_role("button", name="Download JSON").click()
    expect(panel.get_by_role("alert")).to_contain_text("The store is away.")


def test_the_bell_is_on_the_manage_screen_too(stub: StubCrew, open_page: OpenPage) -> None:
    page = open_page("#/manage/activity")
    page.get_by_role("button", name="Notifications", exact=True).click()
    expect(page.get_by_role("dialog", name="Notifications")).to_contain_text("Nothing to tell.")
