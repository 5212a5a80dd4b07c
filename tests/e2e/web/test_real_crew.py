"""The same page on the real thing: ``crew up`` with the model that echoes, and no key."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.fixtures.native_crew import NativeCrew, native_crew

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def crew() -> Iterator[NativeCrew]:
    """One running crew for this file."""
    with native_crew({"MY_AGENT_ROUTES": "fake:echo"}) as started:
        started.start()
        yield started
        started.stop()


@pytest.fixture
def real_page(crew: NativeCrew, browser: Browser) -> Iterator[Page]:
    """The start page of the real crew; a fault of the page or its content policy fails the test."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
    faults: list[str] = []
    context.on("weberror", lambda error: faults.append(str(error.error)))
    context.on(
        "console",
        lambda message: faults.append(message.text) if "Content Security Policy" in message.text else None,
    )
    page = context.new_page()
    page.set_default_timeout(30_000)
    expect.set_options(timeout=30_000)
    page.goto(f"http://127.0.0.1:{crew.port}/")
    expect(page.locator(".start-title")).to_be_visible()
    yield page
    context.close()
    expect.set_options(timeout=5_000)
    assert faults == []


def _say(page: Page, text: str) -> None:
    page.locator(".composer-text").fill(text)
    page.keyboard.press("Enter")


def _tool(name: str, arguments: str) -> str:
    return f"/tool {name} {arguments}"


def test_a_message_is_answered_and_its_run_has_steps(real_page: Page) -> None:
    _say(real_page, "hello there")
    expect(real_page.locator(".reply")).to_contain_text("hello there")
    expect(real_page.locator(".run-column .route-model")).to_have_text("echo")
    expect(real_page.locator(".page-title")).to_have_text("hello there")
    real_page.reload()
    expect(real_page.locator(".bubble")).to_have_text("hello there")
    expect(real_page.locator(".reply")).to_have_count(1)


def test_an_approved_write_happens_and_a_denied_one_does_not(crew: NativeCrew, real_page: Page) -> None:
    _say(real_page, _tool("workspace_write", '{"path": "notes.md", "content": "one\\ntwo\\n"}'))
    card = real_page.locator(".approval")
    expect(card).to_contain_text("notes.md")
    expect(card.locator(".argument", has_text="content")).to_contain_text("one\ntwo")
    assert not (crew.workspace / "notes.md").exists()
    card.get_by_role("button", name="Approve").click()
    expect(real_page.locator(".call-ok")).to_contain_text("workspace_write")
    assert (crew.workspace / "notes.md").read_text() == "one\ntwo\n"

    _say(real_page, _tool("shell_run", '{"command": "rm -rf notes.md"}'))
    expect(card.locator("mark")).to_have_text("rm -rf")
    expect(card.get_by_role("button", name="Always allow")).to_have_count(0)
    card.get_by_role("button", name="Deny").click()
    expect(real_page.locator(".call-failed")).to_contain_text("did not run")
    assert (crew.workspace / "notes.md").exists()

    real_page.goto(f"http://127.0.0.1:{crew.port}/#/manage/approvals")
    expect(real_page.locator(".decided-row").nth(0)).to_contain_text("Denied")
    expect(real_page.locator(".decided-row").nth(1)).to_contain_text("Approved")


def test_two_tabs_see_one_turn_and_one_decides_for_both(crew: NativeCrew, real_page: Page) -> None:
    _say(real_page, _tool("workspace_write", '{"path": "two.md", "content": "x"}'))
    expect(real_page.locator(".approval")).to_be_visible()
    other = real_page.context.new_page()
    other.goto(real_page.url)
    other.locator(".approval").get_by_role("button", name="Approve").click()
    for page in (real_page, other):
        expect(page.locator(".approval")).to_have_count(0)
        expect(page.locator(".call-ok")).to_contain_text("workspace_write")
        expect(page.locator(".composer-text")).to_be_enabled()


def test_a_command_can_be_watched_after_a_reload_and_stopped(crew: NativeCrew, real_page: Page) -> None:
    _say(real_page, _tool("shell_run", '{"command": "sleep 120"}'))
    real_page.locator(".approval").get_by_role("button", name="Approve").click()
    expect(real_page.locator(".call-running")).to_be_visible()
    real_page.reload()
    expect(real_page.locator(".call-running")).to_be_visible()
    _say(real_page, "and then this")
    expect(real_page.locator(".chip")).to_contain_text("and then this")
    real_page.get_by_role("button", name="Stop", exact=True).click()
    expect(real_page.locator(".composer-text")).to_have_value("and then this")
    expect(real_page.locator(".call-running")).to_have_count(0)
    expect(real_page.get_by_role("button", name="Stop", exact=True)).to_have_count(0)


def test_settings_connections_and_tokens_are_the_real_ones(crew: NativeCrew, real_page: Page) -> None:
    real_page.goto(f"http://127.0.0.1:{crew.port}/#/manage/connections")
    expect(real_page.get_by_role("region", name="Model routes")).to_contain_text("fake:echo")
    expect(real_page.get_by_role("region", name="Services")).to_contain_text("tools")
    real_page.goto(f"http://127.0.0.1:{crew.port}/#/manage/settings")
    expect(real_page.get_by_role("row", name=re.compile("^routes"))).to_contain_text("environment")
    real_page.get_by_role("button", name="New token").click()
    real_page.get_by_label("Name").fill("relay")
    real_page.get_by_role("button", name="Create token").click()
    expect(real_page.locator(".created-token code")).to_contain_text(re.compile(r"^crew_"))
    remove = real_page.get_by_role("button", name=re.compile("relay"))
    remove.click()
    remove.click()
    expect(remove).to_have_count(0)


def test_what_was_said_is_found_branched_and_kept_in_the_books(crew: NativeCrew, real_page: Page) -> None:
    _say(real_page, "Cà phê sữa đá at nine")
    expect(real_page.locator(".reply")).to_be_visible()
    real_page.keyboard.press("Control+k")
    real_page.keyboard.type("ca phe sua da")
    hit = real_page.get_by_role("region", name="In the content").get_by_role("link").first
    expect(hit.locator("mark").first).to_have_text("Cà")
    hit.click()
    expect(real_page.locator(".row-found")).to_be_in_viewport()
    real_page.get_by_role("button", name="Edit and resend from here").click()
    expect(real_page.locator(".composer-text")).to_have_value("Cà phê sữa đá at nine")
    expect(real_page.get_by_role("link", name=re.compile("Branched from"))).to_be_visible()

    _say(real_page, _tool("shell_run", '{"command": "touch trail.md"}'))
    real_page.locator(".approval").get_by_role("button", name="Approve").click()
    expect(real_page.locator(".call-ok")).to_be_visible()
    real_page.goto(f"http://127.0.0.1:{crew.port}/#/manage/audit")
    real_page.get_by_label("Part of a command").fill("trail.md")
    expect(real_page.locator(".trail-head")).to_have_count(1)
    expect(real_page.locator(".trail-head")).to_contain_text("approved")
    real_page.goto(f"http://127.0.0.1:{crew.port}/#/manage/tools/figures")
    expect(real_page.get_by_role("row", name=re.compile("shell_run"))).to_be_visible()
    real_page.goto(f"http://127.0.0.1:{crew.port}/#/manage/crew")
    real_page.locator(".agent-card").first.click()
    expect(real_page.get_by_role("region", name="Prompt")).to_be_visible()
    real_page.goto(f"http://127.0.0.1:{crew.port}/#/manage/costs")
    expect(real_page.get_by_role("region", name="Today")).to_contain_text("call")
    real_page.get_by_role("button", name=re.compile("^Notifications")).click()
    expect(real_page.get_by_role("dialog", name="Notifications")).to_be_visible()
