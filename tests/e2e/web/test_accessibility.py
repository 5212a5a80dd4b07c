"""Every screen for axe in both themes, the keyboard alone, and what a screen reader is told."""

from __future__ import annotations

from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from .books import SECTIONS, fill_the_books
from .conftest import ROOT, OpenPage, phone, say
from .stub.plans import Ask, Call, Fallback, Hold, Question, Text, plan
from .stub.server import StubCrew

AXE = ROOT / "services" / "gateway" / "web" / "node_modules" / "axe-core" / "axe.min.js"
RICH = (
    "# Title\n\n1. **one** [link](https://example.org)\n\n"
    "| a | b |\n|-|-:|\n| `x` | 1 |\n\n```sh\nls\n```\n> said"
)


def faults(page: Page) -> list[str]:
    """What axe finds serious or critical, one line each."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")
    return [
        f"{one['id']}: {node['target']} {node['failureSummary']}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: npm ci in services/gateway/web")
@pytest.mark.spec("FLD-077", "GTW-258")
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("device", ["desktop", "phone"])
def test_axe_finds_nothing_serious_on_any_screen(
    stub: StubCrew, open_page: OpenPage, theme: str, device: str
) -> None:
    for number in range(9):
        stub.talk(f"Talk {number}", 2, timedelta(days=number))
    options = phone() if device == "phone" else {}
    page = open_page(color_scheme=theme, **options)
    expect(page.locator(".start-title")).to_be_visible()
    assert faults(page) == []
    stub.plan(
        plan(
            Call("workspace_read", {"path": "a"}, "text"),
            Call("shell_run", {"command": "false"}, "exit status 1", ok=False),
            Fallback("a:b", "429", "c:d"),
            Text(RICH),
            Call("shell_run", {"command": "sleep"}, "", hold="call", progress="halfway"),
            Ask("shell_run", {"command": "rm -rf x\u202e"}, "Run rm", reason="It has `rm -rf`."),
            Question("Which?", ["a", "b"]),
            Text("Over."),
        )
    )
    page.locator(".composer-text").fill("Work")
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".call-running")).to_be_visible()
    assert faults(page) == []
    stub.release("call")
    expect(page.locator(".approval")).to_be_visible()
    assert faults(page) == []
    page.locator(".approval").get_by_role("button", name="Approve").click()
    expect(page.locator(".approval-question")).to_be_visible()
    assert faults(page) == []
    page.get_by_role("button", name="a", exact=True).click()
    expect(page.locator(".reply").last).to_contain_text("Over.")
    page.locator(".spend-anchor .pill").click()
    assert faults(page) == []
    page.keyboard.press("Escape")
    stub.look(fill_the_books)
    run = stub.look(lambda api: next(iter(api.state.runs)))
    for section in SECTIONS:
        page.goto(f"{stub.address}/#/manage/{section.format(run=run)}")
        expect(page.locator("h1")).to_be_visible()
        expect(page.get_by_text("Loading…")).to_have_count(0)
        if section == "audit":
            page.locator(".trail-head").first.click()
        assert faults(page) == [], section
    page.get_by_role("button", name="Notifications, 1 new").click()
    expect(page.locator(".notice")).to_be_visible()
    assert faults(page) == []
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    page.get_by_role("searchbox").fill("question")
    expect(page.locator(".content-hit").first).to_be_visible()
    assert faults(page) == []
    stub.look(lambda api: setattr(api, "password", "x"))
    page.reload()
    expect(page.get_by_label("Password")).to_be_visible()
    assert faults(page) == []


@pytest.mark.spec("FLD-077", "GTW-255")
def test_the_keyboard_alone_sends_approves_answers_stops_and_switches(stub: StubCrew, page: Page) -> None:
    def tab_to(name: str) -> None:
        for _ in range(80):
            page.keyboard.press("Tab")
            label = page.evaluate(
                "() => (document.activeElement.ariaLabel || document.activeElement.textContent || '').trim()"
            )
            if label.startswith(name):
                ring = page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle")
                assert ring != "none", name
                return
        raise AssertionError(f"Tab never reached {name}")

    stub.talk("Elsewhere", 2)
    stub.plan(
        plan(
            Ask("shell_run", {"command": "ls"}, "Run ls"),
            Question("Which?", ["Left", "Right"]),
            Text("Endless "),
            Hold("never"),
        )
    )
    page.keyboard.type("Work")
    page.keyboard.press("Enter")
    expect(page.locator(".approval")).to_be_visible()
    tab_to("Approve")
    page.keyboard.press("Enter")
    expect(page.locator(".approval-question")).to_be_visible()
    tab_to("Right")
    page.keyboard.press("Enter")
    expect(page.locator(".reply-live")).to_be_visible()
    tab_to("Stop")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Stop", exact=True)).to_have_count(0)
    tab_to("Elsewhere")
    page.keyboard.press("Enter")
    expect(page.locator(".page-title")).to_have_text("Elsewhere")
    assert stub.look(lambda api: api.decisions) == [{"approve": True, "always": False}, {"answer": "Right"}]


@pytest.mark.spec("FLD-077")
def test_a_screen_reader_is_told_once_of_work_replies_and_requests(stub: StubCrew, page: Page) -> None:
    page.evaluate(
        """() => {
          window.told = [];
          for (const region of document.querySelectorAll("[data-live]")) {
            new MutationObserver(() => {
              const words = region.textContent.trim();
              if (words) window.told.push([region.dataset.live, words]);
            }).observe(region, { childList: true, subtree: true, characterData: true });
          }
        }"""
    )
    stub.plan(
        plan(
            Hold("go"),
            Text("It is " + "x" * 300),
            Call("shell_run", {"command": "ls"}),
            Ask("w", {}, "Write a.md"),
        )
    )
    say(page, "Work")
    page.wait_for_function("() => window.told.length > 0")
    stub.release("go")
    expect(page.locator(".approval")).to_be_visible()
    page.wait_for_function("() => window.told.some(([level]) => level === 'assertive')")
    told = page.evaluate("() => window.told")
    assert ["polite", "Working"] in told
    assert [words for level, words in told if words.startswith("It is")] == ["It is " + "x" * 194]
    assert [words for level, words in told if level == "assertive"] == ["Waits for your decision: Write a.md"]
    assert page.locator(".thread-scroll").get_attribute("aria-live") == "off"


def test_the_sheet_lists_the_keys_and_two_strokes_lead_to_activity(page: Page) -> None:
    page.locator("body").click(position={"x": 700, "y": 200})
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("g")
    page.keyboard.press("a")
    expect(page.locator("h1")).to_have_text("Activity")


def test_nothing_moves_where_motion_is_unwanted(stub: StubCrew, page: Page) -> None:
    stub.plan(plan(Hold("never")))
    say(page, "Work")
    expect(page.locator(".working .spinner")).to_be_visible()
    assert page.evaluate("() => document.getAnimations().length") == 0
