"""Addresses, login, settings, the phone, and a crew that does not answer."""

from __future__ import annotations

import gzip
import re
from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from .books import SECTIONS, fill_the_books
from .conftest import STATIC, OpenPage, phone, say
from .stub.plans import Ask, Call, Fail, Text, plan
from .stub.server import StubCrew

MESSY = "https://example.org/" + "very-long-path-without-a-break/" * 12
PLAN = plan(
    Call("shell_run", {"command": "grep -r " + "x" * 200}, "y" * 800, ok=False),
    Text(
        f"See {MESSY}\n\n| a | b | c | d | e |\n|-|-|-|-|-|\n| {'w' * 60} | 2 | 3 | 4 | 5 |\n\n"
        f"```\n{'z' * 300}\n```"
    ),
)


def test_the_script_of_the_page_stays_under_a_quarter_megabyte_and_its_first_part_under_the_half() -> None:
    sizes = {path.name: len(gzip.compress(path.read_bytes())) for path in (STATIC / "assets").glob("*.js")}
    assert sum(sizes.values()) < 250_000
    entry = re.search(r'src="/assets/([^"]+)"', (STATIC / "index.html").read_text())
    assert entry is not None
    assert sizes[entry[1]] < 125_000


@pytest.mark.spec("GTW-261")
def test_letters_come_with_the_page_and_nothing_from_elsewhere(stub: StubCrew, open_page: OpenPage) -> None:
    page = open_page(color_scheme="dark")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.reload()
    for section in SECTIONS:
        page.goto(f"{stub.address}/#/manage/{section}")
        expect(page.locator("h1, [role=alert]").first).to_be_visible()
    assert [url for url in asked if not url.startswith((stub.address, "data:", "blob:"))] == []
    page.evaluate("() => Promise.all([...document.fonts].map(face => face.load()))")
    faces = page.evaluate("() => [...document.fonts].map(face => [face.family, face.status])")
    assert {family.strip('"') for family, _ in faces} == {"Inter Variable", "JetBrains Mono Variable"}
    assert {status for _, status in faces} == {"loaded"}
    dark = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    page.emulate_media(color_scheme="light")
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") != dark


@pytest.mark.spec("GTW-214")
def test_conversations_stand_under_their_day_and_delegated_ones_nowhere(
    stub: StubCrew, open_page: OpenPage
) -> None:
    stub.talk("Fresh", 2)
    stub.talk("Ancient", 2, timedelta(days=9))
    child = stub.talk("Child", 2)
    stub.look(lambda api: api.state.talks[child].head.update(channel="delegate"))
    page = open_page()
    expect(page.get_by_role("region", name="Today")).to_contain_text("Fresh")
    expect(page.get_by_role("region", name="Older")).to_contain_text("Ancient")
    expect(page.get_by_role("navigation")).not_to_contain_text("Child")
    expect(page.get_by_role("searchbox")).to_have_count(0)


@pytest.mark.spec("GTW-215")
def test_from_eight_conversations_on_titles_can_be_searched(stub: StubCrew, open_page: OpenPage) -> None:
    for number in range(8):
        stub.talk(f"Talk {number}", 2)
    page = open_page()
    page.keyboard.press("Escape")
    page.locator("body").click(position={"x": 700, "y": 200})
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("talk 5")
    expect(page.locator(".conversation-link")).to_have_count(1)
    expect(page.locator(".conversation-link")).to_contain_text("Talk 5")


@pytest.mark.spec("GTW-241")
def test_one_run_has_an_address_that_survives_a_reload(stub: StubCrew, page: Page) -> None:
    stub.plan(plan(Call("workspace_read", {"path": "a.md"}, "text"), Text("Read it.")))
    say(page, "Read")
    expect(page.locator(".reply")).to_be_visible()
    page.goto(f"{stub.address}/#/manage/activity")
    page.get_by_role("link", name=re.compile("Read it")).click()
    expect(page.locator("h1")).to_have_text("Read it.")
    assert re.search(r"#/manage/activity/run-\d+$", page.url)
    page.reload()
    expect(page.locator("h1")).to_have_text("Read it.")
    expect(page.locator(".timeline")).to_contain_text("workspace_read")


@pytest.mark.spec("GTW-240")
def test_failed_runs_need_the_person_until_seen_on_this_device(stub: StubCrew, page: Page) -> None:
    stub.plan(plan(Fail("Every route failed.")))
    say(page, "Fail")
    expect(page.locator(".note-error")).to_be_visible()
    page.goto(f"{stub.address}/#/manage/activity")
    panel = page.get_by_role("region", name="Needs you")
    expect(panel).to_contain_text("Every route failed.")
    panel.get_by_role("button", name="Seen").click()
    expect(panel).to_have_count(0)
    page.reload()
    expect(page.get_by_role("region", name="History")).to_contain_text("Every route failed.")
    expect(panel).to_have_count(0)


def test_an_unknown_conversation_and_an_unknown_run_say_so(stub: StubCrew, page: Page) -> None:
    page.goto(f"{stub.address}/#/c/nothing")
    expect(page.locator("h1")).to_have_text("This conversation does not exist")
    page.goto(f"{stub.address}/#/manage/activity/nothing")
    expect(page.get_by_role("alert")).to_contain_text("There is no such run.")


@pytest.mark.spec("GTW-252")
def test_settings_show_values_with_their_source_and_manage_tokens(
    stub: StubCrew, open_page: OpenPage
) -> None:
    page = open_page("#/manage/settings")
    row = page.get_by_role("row", name=re.compile("approval_ttl_seconds"))
    expect(row).to_contain_text("600")
    expect(row).to_contain_text("environment")
    page.get_by_role("button", name="New token").click()
    page.get_by_label("Name").fill("mail relay")
    page.get_by_label("approve").check()
    page.get_by_role("button", name="Create token").click()
    expect(page.get_by_text("crew_8fK2x9qLw0ZrT4vB")).to_be_visible()
    page.get_by_role("button", name="I have stored it").click()
    expect(page.get_by_text("crew_8fK2x9qLw0ZrT4vB")).to_have_count(0)
    assert stub.look(lambda api: api.state.tokens[0]["scopes"]) == ["read", "chat", "approve"]
    remove = page.get_by_role("button", name=re.compile("mail relay"))
    remove.click()
    assert len(stub.look(lambda api: api.state.tokens)) == 1
    remove.click()
    expect(remove).to_have_count(0)


def test_connections_show_services_routes_hosts_and_keys(open_page: OpenPage) -> None:
    page = open_page("#/manage/connections")
    expect(page.get_by_role("region", name="Services")).to_contain_text("orchestrator")
    expect(page.get_by_role("region", name="Model routes")).to_contain_text(
        "Nothing listens on 127.0.0.1:11434."
    )
    expect(page.get_by_role("region", name="Tool hosts")).to_contain_text("Kept apart by the system")
    expect(page.get_by_role("region", name="Keys")).to_contain_text("OPENAI_API_KEYnot set")


@pytest.mark.spec("GTW-262")
def test_the_language_is_the_servers_until_this_device_chose_one(stub: StubCrew, open_page: OpenPage) -> None:
    stub.look(lambda api: setattr(api.house, "language", "vi"))
    page = open_page()
    expect(page.locator(".start-title")).to_have_text("Bạn muốn nhờ đội làm gì?")
    expect(page.locator("html")).to_have_attribute("lang", "vi")
    page.goto(f"{stub.address}/#/manage/settings")
    page.get_by_role("radio", name="English").click()
    expect(page.locator("h1")).to_have_text("Settings")
    page.reload()
    expect(page.locator("h1")).to_have_text("Settings")


def test_login_and_a_session_that_ends_keep_the_draft(stub: StubCrew, open_page: OpenPage) -> None:
    stub.look(lambda api: setattr(api, "password", "correct horse"))
    page = open_page()
    page.get_by_label("Password").fill("wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("That is not the password.")
    page.get_by_label("Password").fill("correct horse")
    page.keyboard.press("Enter")
    page.locator(".composer-text").fill("half a thought")
    stub.look(lambda api: setattr(api, "logged_in", False))
    page.keyboard.press("Enter")
    expect(page.get_by_label("Password")).to_be_visible()
    page.get_by_label("Password").fill("correct horse")
    page.keyboard.press("Enter")
    expect(page.locator(".composer-text")).to_have_value("half a thought")


def test_the_one_time_link_sets_the_password_and_leaves_the_address(
    stub: StubCrew, open_page: OpenPage
) -> None:
    stub.look(lambda api: setattr(api, "setup_token", "once-7f3a"))
    page = open_page("#/setup/once-7f3a")
    expect(page.get_by_label("New password")).to_be_visible()
    assert "once-7f3a" not in page.url
    page.get_by_label("New password").fill("short")
    expect(page.get_by_role("button", name="Set password")).to_be_disabled()
    page.get_by_label("New password").fill("long enough words")
    page.get_by_label("Once more").fill("long enough word")
    expect(page.get_by_text("The two are not the same.")).to_be_visible()
    page.get_by_label("Once more").fill("long enough words")
    page.get_by_role("button", name="Set password").click()
    expect(page.locator(".start-title")).to_be_visible()
    assert stub.look(lambda api: api.password) == "long enough words"


@pytest.mark.spec("GTW-238", "GTW-253")
def test_a_crew_that_is_away_is_named_and_comes_back_by_itself(stub: StubCrew, page: Page) -> None:
    talk = stub.talk("Kept", 4)
    page.goto(f"{stub.address}/#/c/{talk}")
    expect(page.locator(".reply").last).to_contain_text("Answer 4")
    stub.look(lambda api: setattr(api, "down", "The orchestrator does not answer."))
    stub.on_loop(lambda: [queue.put_nowait(None) for queue in stub.api.state.watchers])
    bar = page.locator(".bar-down")
    expect(bar).to_contain_text("The orchestrator does not answer.")
    expect(bar).to_contain_text(re.compile(r"Since \d"))
    expect(page.locator(".reply").last).to_contain_text("Answer 4")
    stub.look(lambda api: setattr(api, "down", ""))
    expect(bar).to_have_count(0, timeout=15_000)


def test_one_service_away_is_named_while_the_rest_works(stub: StubCrew, open_page: OpenPage) -> None:
    stub.look(lambda api: api.services[1].update(reachable=False, note="It is started again."))
    page = open_page()
    expect(page.locator(".bar-degraded")).to_contain_text("tools")
    expect(page.locator(".bar-degraded")).to_contain_text("It is started again.")
    say(page, "Hello")
    expect(page.locator(".reply")).to_be_visible()


def test_a_device_without_network_says_so(page: Page) -> None:
    page.context.set_offline(True)
    expect(page.locator(".bar-down")).to_contain_text("This device is offline.")
    page.context.set_offline(False)
    expect(page.locator(".bar-down")).to_have_count(0)


# Links within a sentence are exempt: their line is what is touched.
SMALL = """() => [...document.querySelectorAll("button, a[href], select, input:not([type=checkbox])")]
  .filter(one => {
    const { width, height } = one.getBoundingClientRect();
    if (width === 0 || (height >= 40 && width >= 40)) return false;
    return !one.closest("p, dd, .approval-meta, .run-row-meta");
  })
  .map(one => `${one.className} ${one.textContent} ${one.getBoundingClientRect().height}`)"""
SCREENS = ["#/", *(f"#/manage/{section}" for section in SECTIONS if "{" not in section)]


@pytest.mark.spec("GTW-259")
@pytest.mark.parametrize("width", [390, 320])
def test_nothing_scrolls_sideways_on_a_phone(stub: StubCrew, open_page: OpenPage, width: int) -> None:
    page = open_page(**{**phone(), "viewport": {"width": width, "height": 700}})
    stub.plan(PLAN, plan(Ask("shell_run", {"command": "x" * 300}, "Run " + "w" * 120, reason="r" * 200)))
    page.locator(".composer-text").fill("First")
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".reply").last).to_contain_text("See ")
    expect(page.get_by_role("button", name="Stop", exact=True)).to_have_count(0)
    page.locator(".composer-text").fill("v" * 300)
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".approval")).to_be_visible()
    stub.look(fill_the_books)
    for screen in [page.url.split("/", 3)[3], *SCREENS]:
        page.goto(f"{stub.address}/{screen}")
        expect(page.locator("h1").first).to_be_visible()
        expect(page.get_by_text("Loading…")).to_have_count(0)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, screen
        wide = page.evaluate(
            """width => [...document.querySelectorAll("body *")].filter(one => {
              const box = one.getBoundingClientRect();
              if (box.width === 0 || box.right <= width + 1) return false;
              for (let up = one.parentElement; up; up = up.parentElement) {
                if (/auto|scroll|hidden/.test(getComputedStyle(up).overflowX)) return false;
              }
              return true;
            }).map(one => one.className)""",
            width,
        )
        assert wide == [], screen


@pytest.mark.spec("GTW-259")
def test_every_control_on_a_phone_is_large_enough_to_touch(stub: StubCrew, open_page: OpenPage) -> None:
    stub.plan(plan(Ask("shell_run", {"command": "ls"}, "Run ls")))
    page = open_page(**phone())
    page.locator(".composer-text").fill("Do it")
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".approval")).to_be_visible()
    stub.look(fill_the_books)
    for screen in [page.url.split("/", 3)[3], *SCREENS]:
        page.goto(f"{stub.address}/{screen}")
        expect(page.locator("h1").first).to_be_visible()
        expect(page.get_by_text("Loading…")).to_have_count(0)
        small = page.evaluate(SMALL)
        assert small == [], screen
        tiny = page.evaluate(
            "() => [...document.querySelectorAll('input, textarea, select')].filter(one => "
            "one.getBoundingClientRect().width > 0 && one.type !== 'checkbox' && "
            "parseFloat(getComputedStyle(one).fontSize) < 16).map(one => one.className)"
        )
        assert tiny == [], screen


@pytest.mark.spec("GTW-259", "GTW-256")
def test_the_list_is_a_modal_drawer_on_a_phone(stub: StubCrew, open_page: OpenPage) -> None:
    stub.talk("Somewhere", 2)
    page = open_page(**phone())
    menu = page.get_by_role("button", name="Open the list of conversations")
    menu.click()
    expect(page.get_by_role("dialog", name="Conversations")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(menu).to_be_focused()
    menu.click()
    page.get_by_role("link", name="Somewhere").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(".page-title")).to_have_text("Somewhere")


def test_between_phone_and_desktop_the_list_opens_from_the_icons(stub: StubCrew, open_page: OpenPage) -> None:
    stub.talk("Somewhere", 2)
    page = open_page(viewport={"width": 900, "height": 800})
    expect(page.get_by_role("link", name="Somewhere")).to_have_count(0)
    expect(page.get_by_role("link", name="Approvals")).to_be_visible()
    page.get_by_role("button", name="Open the list of conversations").click()
    page.get_by_role("link", name="Somewhere").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(".page-title")).to_have_text("Somewhere")


@pytest.mark.spec("GTW-263")
def test_the_installed_app_finds_its_icons(stub: StubCrew, page: Page) -> None:
    manifest = page.request.get(f"{stub.address}/manifest.webmanifest").json()
    assert {(icon["sizes"], icon.get("purpose")) for icon in manifest["icons"]} == {
        ("192x192", None),
        ("512x512", None),
        ("512x512", "maskable"),
    }
    for name in [
        "favicon.svg",
        "apple-touch-icon.png",
        *(icon["src"].lstrip("/") for icon in manifest["icons"]),
    ]:
        answer = page.request.get(f"{stub.address}/{name}")
        assert answer.ok
        assert answer.headers["content-type"].startswith("image/"), name
    assert page.locator("link[rel=manifest]").get_attribute("href") == "/manifest.webmanifest"


@pytest.mark.spec("GTW-266")
def test_the_page_works_where_the_browser_refuses_its_store(stub: StubCrew, open_page: OpenPage) -> None:
    page = open_page()
    page.add_init_script(
        "Object.defineProperty(window, 'localStorage',"
        " { get() { throw new DOMException('no', 'SecurityError') } })"
    )
    page.reload()
    say(page, "Hello")
    expect(page.locator(".reply")).to_be_visible()
