"""Requests that wait for a person."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from .conftest import say
from .stub.plans import Ask, Question, Text, plan
from .stub.server import StubCrew

DIFF = "--- a/notes.md\n+++ b/notes.md\n@@ -1 +1 @@\n-old\n+new\n"
WRITE = Ask(
    "workspace_edit",
    {"path": "notes.md", "old": "old", "new": "new"},
    "Edit notes.md, 1 line changed, in the workspace of Pong",
    preview=DIFF,
    output="written",
)
RISKY = Ask(
    "shell_run",
    {"command": "sudo rm -rf /srv/x\u202e"},
    "Run a command in the workspace of Pong",
    reason="The ask list has `rm -rf`.",
    may_always=False,
)


def ask(stub: StubCrew, page: Page, request: Ask | Question) -> None:
    """Bring a request up."""
    stub.plan(plan(request, Text("It went on.")))
    say(page, "Do it")
    expect(page.locator(".approval")).to_be_visible()


@pytest.mark.spec("GTW-224", "FLD-028", "GTW-283")
def test_a_request_says_what_who_and_until_when_and_approval_goes_on(stub: StubCrew, page: Page) -> None:
    ask(stub, page, WRITE)
    card = page.locator(".approval")
    expect(card.get_by_role("heading")).to_have_text(
        "Edit notes.md, 1 line changed, in the workspace of Pong"
    )
    expect(card).to_contain_text("Pong")
    expect(card).to_contain_text("Do it")
    expect(card.locator(".time-left")).to_contain_text("left")
    expect(card.locator(".diff-added")).to_have_text("+new")
    expect(card.locator(".argument", has_text="path")).to_contain_text("notes.md")
    expect(page.locator(".composer-text")).to_be_disabled()
    expect(page.locator(".composer-text")).to_have_attribute("placeholder", "Waiting for your decision above")
    card.get_by_role("button", name="Approve").click()
    expect(page.locator(".reply").last).to_contain_text("It went on.")
    expect(card).to_have_count(0)
    expect(page.locator(".call-ok")).to_contain_text("workspace_edit")
    expect(page.locator(".composer-text")).to_be_enabled()


def test_a_denial_is_told_to_the_model_and_the_turn_goes_on(stub: StubCrew, page: Page) -> None:
    ask(stub, page, WRITE)
    page.get_by_role("button", name="Deny").click()
    expect(page.locator(".call-failed")).to_contain_text("denied this call")
    expect(page.locator(".reply").last).to_contain_text("It went on.")
    assert stub.look(lambda api: api.decisions) == [{"approve": False, "always": False}]


@pytest.mark.spec("TRN-203", "GTW-224")
def test_always_allow_is_offered_only_where_it_may_be(stub: StubCrew, page: Page) -> None:
    ask(stub, page, RISKY)
    expect(page.get_by_role("button", name="Always allow")).to_have_count(0)
    expect(page.locator(".approval-reason")).to_contain_text("The ask list has rm -rf.")
    expect(page.locator(".approval .command mark")).to_have_text("rm -rf")
    page.get_by_role("button", name="Deny").click()
    expect(page.locator(".approval")).to_have_count(0)
    ask(stub, page, WRITE)
    page.get_by_role("button", name="Always allow").click()
    expect(page.locator(".approval")).to_have_count(0)
    assert stub.look(lambda api: api.decisions[-1]) == {"approve": True, "always": True}


@pytest.mark.spec("FLD-025")
def test_what_hides_in_a_command_is_written_out(stub: StubCrew, page: Page) -> None:
    ask(stub, page, RISKY)
    expect(page.locator(".approval .command")).to_have_text("sudo rm -rf /srv/x[U+202E]")


def test_a_request_takes_no_focus_and_enter_decides_nothing(stub: StubCrew, page: Page) -> None:
    ask(stub, page, WRITE)
    assert page.evaluate("document.activeElement.closest('.approval')") is None
    page.keyboard.press("Enter")
    page.keyboard.press("Control+Enter")
    page.keyboard.press(" ")
    expect(page.locator(".approval")).to_be_visible()
    assert stub.look(lambda api: api.decisions) == []


@pytest.mark.spec("FLD-029")
def test_buttons_are_off_until_the_server_answered_and_two_presses_are_one_decision(
    stub: StubCrew, page: Page
) -> None:
    ask(stub, page, WRITE)
    stub.on_loop(lambda: stub.api.slow_decision.clear())
    approve = page.locator(".approval").get_by_role("button", name="Approve")
    approve.dblclick()
    expect(approve).to_be_disabled()
    expect(page.get_by_role("button", name="Deny")).to_be_disabled()
    expect(page.locator(".approval")).to_be_visible()
    stub.on_loop(lambda: stub.api.slow_decision.set())
    expect(page.locator(".approval")).to_have_count(0)
    assert len(stub.look(lambda api: api.decisions)) == 1


@pytest.mark.spec("FLD-029")
def test_a_failed_decision_says_so_on_the_card_and_can_be_pressed_again(stub: StubCrew, page: Page) -> None:
    ask(stub, page, WRITE)
    approval = stub.look(lambda api: next(t.approval["id"] for t in api.state.talks.values() if t.approval))
    stub.look(lambda api: api.refuse.update({f"/approvals/{approval}": [(503, "The orchestrator is away.")]}))
    page.locator(".approval").get_by_role("button", name="Approve").click()
    expect(page.locator(".approval-failed")).to_contain_text("The orchestrator is away.")
    expect(page.locator(".approval-failed")).to_contain_text("nothing has run")
    page.locator(".approval").get_by_role("button", name="Approve").click()
    expect(page.locator(".reply").last).to_contain_text("It went on.")


@pytest.mark.spec("GTW-227", "GTW-283", "GTW-264")
def test_a_decision_in_another_tab_closes_the_card_here_and_the_title_counts(
    stub: StubCrew, page: Page
) -> None:
    ask(stub, page, WRITE)
    expect(page).to_have_title("(1) Crew")
    other = page.context.new_page()
    other.goto(page.url)
    other.locator(".approval").get_by_role("button", name="Approve").click()
    expect(page.locator(".approval")).to_have_count(0)
    expect(page.locator(".reply").last).to_contain_text("It went on.")
    expect(page.locator(".composer-text")).to_be_enabled()
    expect(page).to_have_title("Crew")


@pytest.mark.spec("GTW-227")
def test_deciding_what_was_decided_elsewhere_first_says_so(stub: StubCrew, page: Page) -> None:
    ask(stub, page, WRITE)
    stub.look(lambda api: api.refuse.update({"approvals/" + _waiting(api): [(409, "Decided already.")]}))
    page.locator(".approval").get_by_role("button", name="Approve").click()
    expect(page.locator(".foot")).to_contain_text("Already handled elsewhere.")


def _waiting(api) -> str:  # type: ignore[no-untyped-def]
    return str(next(talk.approval["id"] for talk in api.state.talks.values() if talk.approval))


@pytest.mark.spec("GTW-242")
def test_an_overdue_request_counts_down_and_offers_nothing(stub: StubCrew, page: Page) -> None:
    stub.plan(plan(Ask("shell_run", {"command": "ls"}, "Run ls", seconds=2), Text("Never.")))
    say(page, "Do it")
    expect(page.locator(".approval")).to_contain_text("Expired")
    expect(page.locator(".approval").get_by_role("button", name="Approve")).to_be_disabled()
    expect(page.locator(".approval").get_by_role("button", name="Deny")).to_be_disabled()


@pytest.mark.spec("GTW-227")
def test_a_question_is_answered_by_an_option_or_in_own_words(stub: StubCrew, page: Page) -> None:
    question = Question("Which disk?", ["The NAS", "The USB disk"])
    ask(stub, page, question)
    expect(page.locator(".composer-text")).to_have_attribute("placeholder", "Waiting for your answer above")
    page.get_by_role("button", name="The NAS").click()
    expect(page.locator(".approval")).to_have_count(0)
    ask(stub, page, question)
    page.get_by_role("textbox", name="Your answer").fill("Neither, the cloud")
    page.keyboard.press("Enter")
    expect(page.locator(".approval")).to_have_count(0)
    assert stub.look(lambda api: api.decisions) == [{"answer": "The NAS"}, {"answer": "Neither, the cloud"}]


@pytest.mark.spec("GTW-242")
def test_the_approvals_page_decides_in_place_and_keeps_history(stub: StubCrew, page: Page) -> None:
    ask(stub, page, WRITE)
    page.goto(f"{stub.address}/#/manage/approvals")
    card = page.locator(".approval")
    expect(card.get_by_role("link", name="Do it")).to_be_visible()
    expect(page.get_by_role("link", name="Approvals 1")).to_be_visible()
    card.get_by_role("button", name="Deny").click()
    expect(card).to_have_count(0)
    expect(page.locator(".calm")).to_contain_text("Nothing waits for you")
    row = page.locator(".decided-row").first
    expect(row).to_contain_text("Denied")
    row.get_by_role("button").first.click()
    expect(row).to_contain_text("by owner")
    expect(row.locator(".diff-added")).to_have_text("+new")


@pytest.mark.spec("GTW-225")
def test_endless_arguments_scroll_and_the_buttons_stay_in_view(stub: StubCrew, page: Page) -> None:
    text = "\n".join(f"line {n}" for n in range(400))
    ask(stub, page, Ask("workspace_write", {"path": "a.md", "content": text}, "Write a.md, 400 lines"))
    expect(page.locator(".approval").get_by_role("button", name="Approve")).to_be_in_viewport()
    box = page.locator(".approval-scroll").bounding_box()
    assert box is not None
    assert box["height"] <= 0.55 * 900
    expect(page.locator(".approval-scroll")).to_contain_text("line 399")


def test_a_spent_budget_asks_to_go_on_or_to_stop(stub: StubCrew, page: Page) -> None:
    ask(
        stub,
        page,
        Ask("budget", {"limit_usd": 2}, "Go on past today's budget of $2?", may_always=False, kind="budget"),
    )
    card = page.locator(".approval")
    expect(card.get_by_role("heading")).to_have_text("Go on past today's budget of $2?")
    expect(card.get_by_role("button", name="Stop for today")).to_be_visible()
    card.get_by_role("button", name="Go on today").click()
    expect(card).to_have_count(0)
    assert stub.look(lambda api: api.decisions[-1]) == {"approve": True, "always": False}
