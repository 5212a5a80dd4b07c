"""The software keyboard of a phone, zoom, and motion."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from .conftest import OpenPage, phone
from .stub.plans import Ask, Hold, Question, Text, plan
from .stub.server import StubCrew

# A keyboard leaves the layout viewport as it is and makes the visual one lower.
KEYBOARD = """height => {
  Object.defineProperty(visualViewport, "height", { configurable: true, get: () => height });
  visualViewport.dispatchEvent(new Event("resize"));
}"""
SEEN = 844 - 336


def bottom_of(page: Page, selector: str) -> float:
    box = page.locator(selector).bounding_box()
    assert box is not None, selector
    return box["y"] + box["height"]


@pytest.mark.spec("FLD-080")
def test_what_is_typed_into_and_decided_stays_above_the_keyboard(stub: StubCrew, open_page: OpenPage) -> None:
    stub.plan(
        plan(
            Ask("shell_run", {"command": "x\n" * 40}, "Run " + "words " * 20, reason="r " * 80),
            Question("Which?", ["One", "Two"]),
            Text("Over."),
        )
    )
    page = open_page(**phone())
    page.locator(".composer-text").tap()
    page.evaluate(KEYBOARD, SEEN)
    assert bottom_of(page, ".composer") <= SEEN
    page.locator(".composer-text").fill("Do it")
    page.get_by_role("button", name="Send", exact=True).tap()
    expect(page.locator(".approval")).to_be_visible()
    for name in ("Approve", "Deny"):
        box = page.get_by_role("button", name=name).bounding_box()
        assert box is not None
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= SEEN
    assert bottom_of(page, ".composer") <= SEEN
    page.get_by_role("button", name="Approve").tap()
    field = page.get_by_role("textbox", name="Your answer")
    field.tap()
    assert bottom_of(page, ".question-own") <= SEEN
    page.evaluate(KEYBOARD, 844)
    assert abs(bottom_of(page, ".composer") - 844) < 60


@pytest.mark.spec("FLD-080")
def test_nothing_is_lost_at_320_pixels_or_at_twice_the_size(stub: StubCrew, open_page: OpenPage) -> None:
    stub.plan(plan(Ask("shell_run", {"command": "ls"}, "Run ls in the workspace of Pong")))
    # A window of 640 at 200 % is one of 320.
    page = open_page(viewport={"width": 320, "height": 568}, device_scale_factor=2)
    page.locator(".composer-text").fill("Do it")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator(".approval")).to_be_visible()
    for name in ("Approve", "Deny", "Open the list of conversations", "Options", "Spend"):
        button = page.get_by_role("button", name=name)
        expect(button).to_be_in_viewport(ratio=1)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 320


@pytest.mark.spec("FLD-080")
def test_nothing_moves_for_who_wants_no_motion_not_even_while_it_works(
    stub: StubCrew, open_page: OpenPage
) -> None:
    stub.plan(plan(Hold("never")))
    page = open_page(**phone(), reduced_motion="reduce")
    page.locator(".composer-text").fill("Do it")
    page.get_by_role("button", name="Send", exact=True).tap()
    expect(page.locator(".working .spinner")).to_be_visible()
    page.get_by_role("button", name="Options").tap()
    expect(page.get_by_role("dialog", name="Options")).to_be_visible()
    assert page.evaluate("() => document.getAnimations().length") == 0
