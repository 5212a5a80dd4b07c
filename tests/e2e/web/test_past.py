"""What was said before: found again, branched off, and never shown in the wrong place."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from .conftest import OpenPage, phone, say
from .stub.plans import Call, Escalate, Hold, Text, plan
from .stub.server import StubCrew


@pytest.mark.spec("GTW-215")
def test_what_was_said_is_found_and_its_hit_leads_to_the_message(stub: StubCrew, open_page: OpenPage) -> None:
    for number in range(7):
        stub.talk(f"Talk {number}", 2)
    long = stub.talk("The long one", 300, timedelta(days=2))
    page = open_page()
    page.keyboard.press("Control+k")
    page.keyboard.type("q")
    expect(page.get_by_role("region", name="In the content")).to_have_count(0)
    page.get_by_role("searchbox").fill("question 101")
    hits = page.get_by_role("region", name="In the content")
    expect(hits.get_by_role("link")).to_have_count(1)
    expect(hits.locator("mark")).to_have_text(["Question", "101"])
    expect(page.get_by_text("No title matches.")).to_be_visible()
    assert stub.look(lambda api: api.past.searches) == ["question 101"]
    page.keyboard.press("ArrowDown")
    expect(hits.get_by_role("link")).to_be_focused()
    page.keyboard.press("Enter")
    found = page.locator(".row-found")
    expect(found).to_have_text("Question 101")
    expect(found).to_be_in_viewport()
    assert f"#/c/{long}/" in page.url


@pytest.mark.spec("GTW-215")
def test_an_answer_that_comes_late_is_not_taken_for_that_of_newer_words(
    stub: StubCrew, open_page: OpenPage
) -> None:
    for number in range(8):
        stub.talk(f"Talk {number}", 2)
    page = open_page()
    stub.look(lambda api: api.slow.update({"/messages/search": asyncio.Event()}))
    page.get_by_role("searchbox").fill("answer")
    with page.expect_event("requestfailed"):
        page.wait_for_timeout(400)
        page.get_by_role("searchbox").fill("nothing like it")
    stub.on_loop(lambda: stub.api.slow["/messages/search"].set())
    expect(page.get_by_text("Nothing was said with these words.")).to_be_visible()
    expect(page.locator(".content-hit")).to_have_count(0)


@pytest.mark.spec("GTW-257")
def test_ctrl_k_opens_the_search_from_every_screen(stub: StubCrew, open_page: OpenPage) -> None:
    stub.talk("Only one", 2)
    page = open_page()
    expect(page.locator(".composer-text")).to_be_focused()
    expect(page.get_by_role("searchbox")).to_have_count(0)
    page.keyboard.press("Control+k")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.goto(f"{stub.address}/#/manage/settings")
    expect(page.locator("h1")).to_have_text("Settings")
    page.keyboard.press("Meta+k")
    expect(page.get_by_role("dialog", name="Conversations").get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("only")
    page.keyboard.press("Enter")
    expect(page.locator(".page-title")).to_have_text("Only one")
    expect(page.get_by_role("dialog")).to_have_count(0)
    small = open_page(**phone())
    expect(small.locator(".start-title")).to_be_visible()
    small.keyboard.press("Control+k")
    expect(small.get_by_role("dialog", name="Conversations").get_by_role("searchbox")).to_be_focused()
    small.keyboard.press("Escape")
    expect(small.get_by_role("dialog")).to_have_count(0)


@pytest.mark.spec("GTW-236")
def test_a_message_is_edited_and_sent_again_in_a_branch(stub: StubCrew, page: Page) -> None:
    talk = stub.talk("Trip", 4)
    page.goto(f"{stub.address}/#/c/{talk}")
    own = page.locator(".row-user", has_text="Question 3")
    own.hover()
    own.get_by_role("button", name="Edit and resend from here").click()
    expect(page.locator(".page-title")).to_have_text("Trip (fork)")
    expect(page.locator(".composer-text")).to_have_value("Question 3")
    expect(page.locator(".bubble")).to_have_text(["Question 1"])
    page.get_by_role("link", name="Branched from Trip").click()
    expect(page.locator(".page-title")).to_have_text("Trip")
    expect(page.locator(".composer-text")).to_have_value("")
    stub.plan(plan(Text("Busy. "), Hold("end")))
    say(page, "Go on")
    expect(page.locator(".reply-live")).to_be_visible()
    expect(page.get_by_role("button", name="Edit and resend from here")).to_have_count(0)
    stub.release("end")
    expect(page.get_by_role("button", name="Edit and resend from here")).to_have_count(3)


@pytest.mark.spec("GTW-236")
def test_a_delegated_conversation_is_not_branched_and_a_refused_branch_says_what_stands(
    stub: StubCrew, page: Page
) -> None:
    talk = stub.talk("Child", 2)
    stub.look(lambda api: api.state.talks[talk].head.update(channel="delegate"))
    page.goto(f"{stub.address}/#/c/{talk}")
    expect(page.locator(".reply")).to_be_visible()
    expect(page.get_by_role("button", name="Edit and resend from here")).to_have_count(0)
    other = stub.talk("Mine", 2)
    stub.look(lambda api: api.refuse.update({"/fork": [(503, "The crew is starting.")]}))
    page.goto(f"{stub.address}/#/c/{other}")
    page.get_by_role("button", name="Edit and resend from here").click()
    expect(page.get_by_role("alert")).to_contain_text("The crew is starting.")
    expect(page.get_by_role("alert")).to_contain_text("This conversation is as it was.")


@pytest.mark.spec("GTW-239")
def test_what_comes_late_of_the_conversation_just_left_is_dropped(stub: StubCrew, page: Page) -> None:
    slow, here = stub.talk("Slow", 4), stub.talk("Here", 2)
    held = f"/conversations/{slow}"
    stub.look(lambda api: api.slow.update({held: asyncio.Event(), f"{held}/messages": asyncio.Event()}))
    with page.expect_request(lambda request: request.url.split("?")[0].endswith(held)):
        page.goto(f"{stub.address}/#/c/{slow}")
    expect(page.locator(".skeleton")).to_be_visible()
    page.goto(f"{stub.address}/#/c/{here}")
    expect(page.locator(".reply")).to_have_count(1)
    with page.expect_response(lambda response: response.url.split("?")[0].endswith(held)):
        stub.on_loop(lambda: stub.api.slow[held].set())
    expect(page.locator(".page-title")).to_have_text("Here")
    expect(page.locator(".bubble")).to_have_text(["Question 1"])
    # A refusal that comes late: its words wait in their own conversation.
    page.goto(f"{stub.address}/#/c/{slow}")
    expect(page.locator(".reply")).to_have_count(2)
    stub.look(lambda api: api.refuse.update({f"{held}/messages": [(429, "Twenty wait.")]}))
    say(page, "Too much")
    expect(page.locator(".bubble-new")).to_be_visible()
    page.goto(f"{stub.address}/#/c/{here}")
    expect(page.locator(".page-title")).to_have_text("Here")
    with page.expect_response(lambda response: response.status == 429):
        stub.on_loop(lambda: stub.api.slow[f"{held}/messages"].set())
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.locator(".composer-text")).to_have_value("")
    page.goto(f"{stub.address}/#/c/{slow}")
    expect(page.locator(".composer-text")).to_have_value("Too much")


@pytest.mark.spec("GTW-239")
def test_a_first_message_does_not_drag_along_who_went_elsewhere(stub: StubCrew, page: Page) -> None:
    here = stub.talk("Here", 2)
    stub.look(lambda api: api.slow.update({"/api/conversations": asyncio.Event()}))
    say(page, "A new thing")
    page.goto(f"{stub.address}/#/c/{here}")
    expect(page.locator(".reply")).to_have_count(1)
    stub.on_loop(lambda: stub.api.slow["/api/conversations"].set())
    expect(page.get_by_role("link", name="A new thing")).to_be_visible()
    expect(page.locator(".page-title")).to_have_text("Here")
    assert page.url.endswith(f"#/c/{here}")


@pytest.mark.spec("GTW-282")
@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("", "the turn was going in circles"),
        ("429 Too Many Requests", "after an error: 429 Too Many Requests"),
    ],
)
def test_a_turn_that_is_handed_on_says_to_whom_and_why(
    stub: StubCrew, page: Page, error: str, words: str
) -> None:
    stub.plan(
        plan(Call("shell_run", {"command": "ls"}, "a"), Escalate("big:model", error), Text("Solved.")),
        plan(Text("Calm.")),
    )
    say(page, "Work")
    line = page.locator(".foot .note-escalated")
    expect(line).to_contain_text("Handed to big:model")
    expect(line).to_contain_text(words)
    expect(page.locator(".reply").last).to_contain_text("Solved.")
    box, composer = line.bounding_box(), page.locator(".composer").bounding_box()
    assert box is not None
    assert composer is not None
    assert box["y"] + box["height"] <= composer["y"]
    say(page, "And now")
    expect(page.locator(".reply").last).to_contain_text("Calm.")
    expect(line).to_have_count(0)


CODE = "See\n\n```sh\nls -la\n```\n\nand `that`."


@pytest.mark.spec("GTW-235")
def test_replies_and_code_are_copied_and_shared_where_the_device_can(
    stub: StubCrew, open_page: OpenPage
) -> None:
    page = open_page()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.add_init_script(
        "window.shared = []; navigator.share = data => { window.shared.push(data.text); return Promise.resolve(); }"
    )
    page.reload()
    stub.plan(plan(Text(CODE)))
    say(page, "Show")
    reply = page.locator(".reply")
    reply.hover()
    reply.get_by_role("button", name="Copy", exact=True).click()
    assert page.evaluate("navigator.clipboard.readText()") == CODE
    reply.get_by_role("button", name="Copy the code").click()
    assert page.evaluate("navigator.clipboard.readText()") == "ls -la"
    reply.get_by_role("button", name="Share", exact=True).click()
    reply.get_by_role("button", name="Share the code").click()
    assert page.evaluate("window.shared") == [CODE, "ls -la"]


@pytest.mark.spec("GTW-235")
def test_where_the_clipboard_refuses_a_box_is_there_to_copy_by_hand(
    stub: StubCrew, open_page: OpenPage
) -> None:
    page = open_page()
    page.add_init_script("navigator.clipboard.writeText = () => Promise.reject(new DOMException('no'));")
    page.reload()
    stub.plan(plan(Text(CODE)))
    say(page, "Show")
    expect(page.get_by_role("button", name=re.compile("Share"))).to_have_count(0)
    copy = page.get_by_role("button", name="Copy the code")
    copy.click()
    box = page.get_by_role("dialog").get_by_role("textbox")
    expect(box).to_have_value("ls -la")
    page.keyboard.press("Escape")
    expect(copy).to_be_focused()
