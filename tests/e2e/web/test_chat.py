"""The chat: sending, streaming, watching, queueing, stopping."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from .conftest import OpenPage, phone, say
from .stub.plans import Call, Fail, Fallback, Halt, Hold, Text, plan
from .stub.server import StubCrew


def test_the_first_message_opens_a_conversation_and_its_reply_streams(stub: StubCrew, page: Page) -> None:
    stub.plan(plan(Text("First half, "), Hold("rest"), Text("second half.")))
    say(page, "Tell me")
    expect(page.locator(".bubble")).to_have_text("Tell me")
    expect(page.locator(".reply-live")).to_contain_text("First half,")
    assert re.search(r"#/c/conv-\d+$", page.url)
    stub.release("rest")
    expect(page.locator(".reply")).to_contain_text("First half, second half.")
    expect(page.locator(".reply-live")).to_have_count(0)
    expect(page.locator(".rail-link.current")).to_contain_text("Tell me")


@pytest.mark.spec("GTW-284")
def test_the_end_of_a_turn_sets_the_spend_in_header_and_run_card(stub: StubCrew, page: Page) -> None:
    stub.plan(plan(Text("Done."), cost_usd=0.0317))
    say(page, "Work")
    expect(page.locator(".pill-figure")).to_have_text("$0.0317")
    expect(page.locator(".run .run-figures")).to_contain_text("$0.0317")


@pytest.mark.spec("GTW-228", "TRN-304", "TRN-260")
def test_a_run_shows_its_steps_with_unknown_prices_and_reasons_of_failures(
    stub: StubCrew, page: Page
) -> None:
    stub.plan(
        plan(
            Call("workspace_read", {"path": "a.md"}, "text", ms=4),
            Call("shell_run", {"command": "false"}, "exit status 1", ok=False, ms=9),
            Fallback("openrouter:a/b", "429 Too Many Requests", "ollama:q"),
            Text("Over."),
            cost_usd=None,
        )
    )
    say(page, "Work")
    column = page.get_by_role("complementary")
    expect(column.locator(".route-model").first).to_be_visible()
    expect(column.locator(".step-figures").first).to_contain_text("price unknown")
    expect(column.locator(".step-figures").first).not_to_contain_text("$")
    expect(column.locator(".step-figures").first).to_contain_text("8.4k in, 7.2k cached")
    # The reason stands there without a press; what went well is folded.
    expect(column.locator(".step-reason").first).to_have_text("exit status 1")
    expect(column.locator(".step", has_text="workspace_read")).to_contain_text("4 ms")
    expect(column.locator(".step-detail")).to_have_count(0)
    expect(column).to_contain_text("openrouter:a/b failed, then ollama:q")


@pytest.mark.spec("GTW-285")
def test_failed_calls_are_open_and_whole_and_done_ones_folded(stub: StubCrew, page: Page) -> None:
    reason = "Permission denied: " + "x" * 560
    stub.plan(
        plan(
            Call("workspace_read", {"path": "a.md"}, "the whole text"),
            Call("shell_run", {"command": "cat /etc/shadow"}, reason, ok=False),
            Text("Over."),
        )
    )
    say(page, "Work")
    failed = page.locator(".call-failed")
    expect(failed.locator(".result-text")).to_have_text(reason)
    expect(failed.locator(".result-box")).to_have_count(0)
    done = page.locator(".call-ok")
    expect(done.locator(".result-text")).to_have_count(0)
    done.get_by_role("button").first.click()
    expect(done.locator(".result-text")).to_have_text("the whole text")
    done.get_by_role("button", name="Hide the result").click()
    expect(done.locator(".result-text")).to_have_count(0)


@pytest.mark.spec("GTW-237", "GTW-075", "FLD-076")
def test_a_reload_in_the_middle_of_a_turn_goes_on_watching(stub: StubCrew, page: Page) -> None:
    stub.plan(
        plan(Text("One. "), Call("shell_run", {"command": "ls"}, "a", hold="call"), Text("Two."), Hold("end"))
    )
    say(page, "Work")
    expect(page.locator(".call-running")).to_be_visible()
    page.reload()
    expect(page.locator(".call-running")).to_be_visible()
    expect(page.locator(".reply .prose")).to_have_text("One.")
    stub.release("call")
    expect(page.locator(".reply-live")).to_have_text("Two.")
    stub.release("end")
    expect(page.locator(".reply")).to_have_count(2)
    expect(page.get_by_role("button", name="Stop", exact=True)).to_have_count(0)


@pytest.mark.spec("GTW-237", "FLD-076")
def test_two_tabs_show_the_same_also_a_turn_that_neither_started(stub: StubCrew, page: Page) -> None:
    talk = stub.talk("Shared", 2)
    other = page.context.new_page()
    for tab in (page, other):
        tab.goto(f"{stub.address}/#/c/{talk}")
        expect(tab.locator(".reply")).to_have_count(1)
    stub.plan(plan(Text("From elsewhere. "), Hold("go"), Text("The end.")))
    stub.begin(talk, "Asked by telephone")
    for tab in (page, other):
        expect(tab.locator(".bubble").last).to_have_text("Asked by telephone")
        expect(tab.locator(".reply-live")).to_contain_text("From elsewhere.")
    stub.release("go")
    for tab in (page, other):
        expect(tab.locator(".reply").last).to_contain_text("From elsewhere. The end.")
        expect(tab.locator(".reply-live")).to_have_count(0)


@pytest.mark.spec("GTW-221", "TRN-086")
def test_a_message_beside_a_turn_is_a_chip_that_survives_a_reload(stub: StubCrew, page: Page) -> None:
    stub.plan(plan(Text("Long. "), Hold("end")), plan(Text("Both answered.")))
    say(page, "First")
    expect(page.locator(".reply-live")).to_be_visible()
    page.locator(".composer-text").fill("Second")
    expect(page.get_by_role("button", name="Queue")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.locator(".chip")).to_have_text("Queued, runs after this turnSecond")
    page.locator(".composer-text").fill("/steer left")
    expect(page.get_by_role("button", name="Steer")).to_be_visible()
    page.locator(".composer-text").fill("Third")
    page.keyboard.press("Enter")
    expect(page.locator(".chip")).to_have_count(2)
    page.reload()
    expect(page.locator(".chip")).to_have_count(2)
    expect(page.locator(".chip button")).to_have_count(0)
    stub.release("end")
    expect(page.locator(".chip")).to_have_count(0)
    expect(page.locator(".bubble").last).to_have_text("Second\n\nThird")
    expect(page.locator(".reply").last).to_contain_text("Both answered.")


@pytest.mark.spec("GTW-222", "TRN-096")
def test_stop_ends_the_turn_and_gives_waiting_words_back_in_order(stub: StubCrew, page: Page) -> None:
    stub.plan(plan(Text("Endless. "), Hold("never")))
    say(page, "First")
    expect(page.locator(".reply-live")).to_be_visible()
    for words in ("Second", "Third"):
        say(page, words)
        expect(page.locator(".chip", has_text=words)).to_be_visible()
    page.locator(".composer-text").fill("being typed")
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.locator(".composer-text")).to_have_value("Second\n\nThird\n\nbeing typed")
    expect(page.locator(".chip")).to_have_count(0)
    expect(page.get_by_role("button", name="Stop", exact=True)).to_have_count(0)
    expect(page.locator(".status-slot")).not_to_contain_text("nothing left")


@pytest.mark.spec("GTW-223")
@pytest.mark.parametrize(
    ("status", "words"), [(413, "over 200,000 characters"), (429, "Twenty wait"), (503, "down")]
)
def test_a_refused_send_takes_its_bubble_back_and_leaves_the_words(
    stub: StubCrew, page: Page, status: int, words: str
) -> None:
    talk = stub.talk("Old", 2)
    page.goto(f"{stub.address}/#/c/{talk}")
    expect(page.locator(".bubble")).to_have_count(1)
    stub.look(lambda api: api.refuse.update({"/messages": [(status, f"Not taken: {words}.")]}))
    say(page, "My long words")
    expect(page.get_by_role("alert")).to_contain_text(f"Not taken: {words}.")
    expect(page.locator(".composer-text")).to_have_value("My long words")
    expect(page.locator(".bubble")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.locator(".bubble")).to_have_count(2)
    expect(page.get_by_role("alert")).to_have_count(0)


def test_an_error_of_the_turn_says_what_is_kept(stub: StubCrew, page: Page) -> None:
    stub.plan(plan(Text("Half a "), Fail("No model answered: every route failed.")))
    say(page, "Work")
    expect(page.locator(".note-error")).to_contain_text("No model answered: every route failed.")
    expect(page.locator(".note-error")).to_contain_text("kept")
    expect(page.locator(".composer-text")).to_be_enabled()


@pytest.mark.spec("GTW-217")
def test_a_spent_budget_locks_and_unlocks_without_a_reload(stub: StubCrew, page: Page) -> None:
    stub.plan(plan(Text("Dear."), Halt("budget"), cost_usd=0.6), plan(Text("Cheap.")))
    stub.look(lambda api: setattr(api.state, "cap", 0.5))
    talk = stub.talk("Dear talk")
    stub.look(lambda api: api.state.talks[talk].head.update(spent_usd=0.6))
    page.goto(f"{stub.address}/#/c/{talk}")
    expect(page.locator(".composer-text")).to_be_disabled()
    expect(page.locator(".over-budget")).to_be_visible()
    page.locator(".over-budget").get_by_role("button", name="+$0.50").click()
    expect(page.locator(".composer-text")).to_be_enabled()
    assert stub.look(lambda api: api.state.talks[talk].head["cost_cap_usd"]) == 1.0


@pytest.mark.spec("GTW-219")
def test_drafts_are_kept_for_each_conversation_across_reloads(stub: StubCrew, page: Page) -> None:
    one, two = stub.talk("One", 2), stub.talk("Two", 2)
    page.goto(f"{stub.address}/#/c/{one}")
    box = page.locator(".composer-text")
    box.fill("for one")
    page.goto(f"{stub.address}/#/c/{two}")
    expect(page.locator(".page-title")).to_have_text("Two")
    expect(box).to_have_value("")
    box.fill("line\nline\nline\nline")
    tall = box.bounding_box()
    page.goto(f"{stub.address}/#/c/{one}")
    expect(box).to_have_value("for one")
    page.reload()
    expect(box).to_have_value("for one")
    expect(box).to_have_attribute("placeholder", "Message Pong…")
    short = box.bounding_box()
    assert tall is not None
    assert short is not None
    assert tall["height"] > short["height"] * 2


@pytest.mark.spec("FLD-079", "GTW-219")
def test_enter_of_an_input_method_sends_nothing(stub: StubCrew, page: Page) -> None:
    box = page.locator(".composer-text")
    box.focus()
    method = page.context.new_cdp_session(page)
    method.send("Input.imeSetComposition", {"text": "tiếng", "selectionStart": 5, "selectionEnd": 5})
    expect(box).to_have_value("tiếng")
    method.send(
        "Input.dispatchKeyEvent",
        {"type": "rawKeyDown", "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 229},
    )
    method.send("Input.insertText", {"text": "tiếng Việt"})
    expect(box).to_have_value("tiếng Việt")
    # The Enter that ends a composition comes in the same event turn as its end.
    page.evaluate(
        """() => {
          const box = document.querySelector(".composer-text");
          box.dispatchEvent(new CompositionEvent("compositionend", { bubbles: true, data: "x" }));
          box.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true }));
        }"""
    )
    assert stub.look(lambda api: api.sent) == []
    page.keyboard.press("Enter")
    expect(page.locator(".bubble")).to_have_text("tiếng Việt")
    assert len(stub.look(lambda api: api.sent)) == 1


@pytest.mark.spec("FLD-078")
def test_scrolling_up_stops_following_and_the_pill_counts_what_is_new(stub: StubCrew, page: Page) -> None:
    talk = stub.talk("Long", 40)
    page.goto(f"{stub.address}/#/c/{talk}")
    expect(page.locator(".reply").last).to_contain_text("Answer 40")
    stub.plan(plan(*[step for n in range(6) for step in (Text("word " * 60), Hold(f"h{n}"))]))
    say(page, "Go on")
    expect(page.locator(".reply-live")).to_be_in_viewport()
    page.locator(".thread-scroll").hover()
    page.mouse.wheel(0, -400)
    expect(page.locator(".below-pill")).to_be_visible()
    before = page.locator(".thread-scroll").evaluate("box => box.scrollTop")
    for n in range(6):
        stub.release(f"h{n}")
    expect(page.locator(".below-pill")).to_have_text("1 new below")
    expect(page.get_by_role("button", name="Stop", exact=True)).to_have_count(0)
    assert abs(page.locator(".thread-scroll").evaluate("box => box.scrollTop") - before) < 2
    page.locator(".below-pill").click()
    expect(page.locator(".below-pill")).to_have_count(0)
    expect(page.locator(".reply").last).to_be_in_viewport()


@pytest.mark.spec("FLD-075")
def test_thousands_of_messages_load_by_fifty_and_few_are_ever_drawn(stub: StubCrew, page: Page) -> None:
    talk = stub.talk("Huge", 2000)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if f"/{talk}?" in request.url else None)
    page.goto(f"{stub.address}/#/c/{talk}")
    expect(page.locator(".reply").last).to_contain_text("Answer 2000")
    expect(page.locator(".reply").last).to_be_in_viewport()
    assert all("limit=50" in url for url in asked)
    scroller = page.locator(".thread-scroll")
    loads = (
        "n => performance.getEntriesByType('resource').filter(e => e.name.includes('before_seq')).length >= n"
    )
    for page_number in range(1, 40):
        scroller.evaluate("box => { box.scrollTop = 0 }")
        page.wait_for_function(loads, arg=page_number)
    expect(page.get_by_role("button", name="Load earlier")).to_have_count(0)
    scroller.evaluate("box => { box.scrollTop = 0 }")
    expect(page.locator(".bubble", has_text=re.compile(r"^Question 1$"))).to_be_in_viewport()
    assert page.locator(".row").count() < 80


@pytest.mark.spec("FLD-078")
def test_older_messages_move_nothing_under_the_reader(stub: StubCrew, page: Page) -> None:
    talk = stub.talk("Tall", 120)
    page.goto(f"{stub.address}/#/c/{talk}")
    expect(page.locator(".reply").last).to_contain_text("Answer 120")
    page.locator(".thread-scroll").hover()
    page.mouse.wheel(0, -1200)
    anchor = page.locator(".bubble", has_text=re.compile(r"^Question 10\d$")).first
    anchor.scroll_into_view_if_needed()
    name = anchor.inner_text()
    anchor = page.locator(".bubble", has_text=re.compile(f"^{name}$"))
    before = anchor.bounding_box()
    with page.expect_response(lambda response: "before_seq" in response.url):
        page.get_by_role("button", name="Load earlier").evaluate("button => button.click()")
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    after = anchor.bounding_box()
    assert before is not None
    assert after is not None
    assert abs(after["y"] - before["y"]) < 3


@pytest.mark.spec("GTW-234")
def test_a_picture_of_another_site_loads_after_a_tap_and_sends_no_referrer(
    stub: StubCrew, page: Page
) -> None:
    asked: list[dict[str, str]] = []

    def answer(route, request) -> None:  # type: ignore[no-untyped-def]
        asked.append(request.headers)
        route.fulfill(
            status=200, content_type="image/svg+xml", body="<svg xmlns='http://www.w3.org/2000/svg'/>"
        )

    page.route("https://pictures.example/**", answer)
    stub.plan(plan(Text("See ![a cat](https://pictures.example/cat.svg?me=1)")))
    say(page, "Show")
    gate = page.get_by_role("button", name="Load the picture from pictures.example")
    expect(gate).to_be_visible()
    expect(page.locator(".composer-text")).to_be_enabled()
    assert asked == []
    gate.click()
    expect(page.locator("img.remote-image")).to_be_attached()
    page.wait_for_function("() => document.querySelector('img.remote-image')?.complete")
    assert len(asked) == 1
    assert "referer" not in asked[0]


@pytest.mark.spec("GTW-234")
def test_what_a_model_writes_never_becomes_markup(stub: StubCrew, page: Page) -> None:
    stub.plan(
        plan(
            Text("<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script> end")
        )
    )
    say(page, "Attack")
    expect(page.locator(".reply")).to_contain_text("<script>")
    assert page.locator(".reply img, .reply script").count() == 0
    assert page.title() == "Crew"


@pytest.mark.spec("GTW-230")
def test_activity_is_a_column_or_a_strip_and_never_both(stub: StubCrew, open_page: OpenPage) -> None:
    stub.plan(plan(Text("Fine.")), plan(Text("Fine.")))
    wide = open_page()
    say(wide, "Hello")
    expect(wide.locator(".run-column .run")).to_be_visible()
    expect(wide.locator(".run-strip")).to_have_count(0)
    narrow = open_page(**phone())
    narrow.locator(".composer-text").fill("Hello")
    narrow.get_by_role("button", name="Send").click()
    expect(narrow.locator(".run-strip")).to_be_visible()
    expect(narrow.locator(".run-column")).to_have_count(0)
    narrow.locator(".run-strip").click()
    expect(narrow.get_by_role("dialog").locator(".route-model")).to_be_visible()
    narrow.keyboard.press("Escape")
    expect(narrow.locator(".run-strip")).to_be_focused()
