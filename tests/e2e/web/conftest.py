"""Real Chromium against the built page; the API behind it is scripted."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from .stub.server import StubCrew

ROOT = Path(__file__).resolve().parents[3]
STATIC = ROOT / "services" / "gateway" / "static"
DESKTOP = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}


# Playwright's loop runs in the main thread while it is open: it is closed with each file, for the
# asynchronous tests of other folders.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One Chromium for a file of tests: the system's."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no Chromium on this machine: apt install chromium")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def served() -> Iterator[StubCrew]:
    """The scripted crew, started once."""
    stub = StubCrew(STATIC).start()
    yield stub
    stub.close()


@pytest.fixture
def stub(served: StubCrew) -> Iterator[StubCrew]:
    """The scripted crew as at the start."""
    served.reset()
    yield served
    served.reset()


OpenPage = Callable[..., Page]


@pytest.fixture
def contexts(browser: Browser) -> Iterator[Callable[..., BrowserContext]]:
    """New browser profiles, closed afterwards; a broken page or a refused resource fails the test."""
    made: list[BrowserContext] = []
    faults: list[str] = []

    def make(**options: object) -> BrowserContext:
        options.setdefault("viewport", DESKTOP)
        options.setdefault("reduced_motion", "reduce")
        context = browser.new_context(**options)  # type: ignore[arg-type]
        context.set_default_timeout(15_000)
        context.on("weberror", lambda error: faults.append(str(error.error)))
        context.on(
            "console",
            lambda message: (
                faults.append(message.text) if "Content Security Policy" in message.text else None
            ),
        )
        made.append(context)
        return context

    yield make
    for context in made:
        context.close()
    assert faults == []


@pytest.fixture
def open_page(stub: StubCrew, contexts: Callable[..., BrowserContext]) -> OpenPage:
    """Open an address of the page in a new profile."""

    def go(address: str = "#/", **options: object) -> Page:
        page = contexts(**options).new_page()
        page.goto(f"{stub.address}/{address}")
        return page

    return go


@pytest.fixture
def page(open_page: OpenPage) -> Page:
    """The start page on a desktop, ready to be typed into."""
    page = open_page()
    expect(page.locator(".start-title")).to_be_visible()
    expect(page.locator(".composer-text")).to_be_focused()
    return page


def say(page: Page, text: str) -> None:
    """Write and send a message."""
    page.locator(".composer-text").fill(text)
    page.keyboard.press("Enter")


def phone() -> dict[str, object]:
    """A phone held upright."""
    return {"viewport": PHONE, "has_touch": True, "is_mobile": True, "device_scale_factor": 2}
