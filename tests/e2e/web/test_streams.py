"""Connections: a browser grants six to one origin over all its tabs."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from .conftest import say
from .stub.plans import Hold, Text, plan
from .stub.server import StubCrew

HIDE = """hidden => {
  const state = { configurable: true, get: () => (hidden ? "hidden" : "visible") };
  Object.defineProperty(document, "visibilityState", state);
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def test_eight_tabs_share_one_activity_stream_and_all_of_them_work(stub: StubCrew, page: Page) -> None:
    tabs = [page]
    for number in range(7):
        tabs[-1].evaluate(HIDE, True)
        tab = page.context.new_page()
        tab.goto(f"{stub.address}/#/c/{stub.talk(f'Talk {number}', 2)}")
        expect(tab.locator(".reply")).to_be_visible()
        tabs.append(tab)
    assert stub.look(lambda api: api.open_streams) == 1
    stub.plan(plan(Text("Through. "), Hold("end")))
    say(tabs[-1], "Eighth tab")
    expect(tabs[-1].locator(".reply-live")).to_have_text("Through.")
    # The first tab holds the stream and tells the last one.
    expect(tabs[-1].locator(".run-column .run")).to_contain_text("Asking the model")
    stub.release("end")
    expect(tabs[-1].locator(".reply").last).to_contain_text("Through.")


def test_when_the_tab_with_the_stream_closes_another_takes_over(stub: StubCrew, page: Page) -> None:
    other = page.context.new_page()
    other.goto(f"{stub.address}/#/")
    expect(other.locator(".start-title")).to_be_visible()
    page.close()
    talk = stub.talk("Later")
    stub.plan(plan(Text("Heard.")))
    stub.begin(talk, "Anyone there?")
    expect(other.get_by_role("link", name="Later")).to_be_visible()
    stub.on_loop(lambda: stub.api.state.tell_activity("conversation", conversation_id=talk, title="Later"))
    assert stub.look(lambda api: api.open_streams) == 1


@pytest.mark.spec("FLD-076")
def test_a_hidden_tab_gives_its_turn_stream_back_and_catches_up(stub: StubCrew, page: Page) -> None:
    ended: list[str] = []
    page.on("requestfailed", lambda request: ended.append(request.url))
    stub.plan(plan(Text("Begun. "), Hold("more"), Text("Finished meanwhile.")))
    say(page, "Long work")
    expect(page.locator(".reply-live")).to_have_text("Begun.")
    with page.expect_event("requestfailed", timeout=15_000) as failed:
        page.evaluate(HIDE, True)
    assert failed.value.url.endswith("/messages")
    stub.release("more")
    page.evaluate(HIDE, False)
    expect(page.locator(".reply")).to_contain_text("Begun. Finished meanwhile.")


def test_streams_that_break_are_joined_again_without_a_reload(stub: StubCrew, page: Page) -> None:
    stub.plan(plan(Text("Before. "), Hold("after"), Text("After.")))
    say(page, "Work")
    expect(page.locator(".reply-live")).to_have_text("Before.")
    page.context.set_offline(True)
    page.context.set_offline(False)
    stub.release("after")
    expect(page.locator(".reply")).to_contain_text("Before. After.")
