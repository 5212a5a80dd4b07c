"""The manage screen: the trail, tools, the crew, costs, and a section that breaks."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from .conftest import OpenPage, phone
from .stub.server import StubCrew
from .stub.shapes import shape


def test_the_trail_says_why_a_call_ran_and_what_came_of_it(stub: StubCrew, open_page: OpenPage) -> None:
    def write(api: Any) -> None:
        api.records.call(
            "shell_run",
            effect="change",
            command="rm -rf build\u202e",
            rule="rm -rf",
            decided_by="owner",
            outcome="done",
            exit_code=0,
            ms=1840,
        )
        api.records.call("shell_run", command="sudo reboot", allowed_by="refused", result="not_run")
        api.records.call("workspace_read", effect="read", allowed_by="free")

    stub.look(write)
    page = open_page("#/manage/audit")
    rows = page.locator(".trail-head")
    expect(rows).to_have_count(2)
    expect(rows.nth(0)).to_contain_text("rm -rf build[U+202E]")
    expect(rows.nth(0)).to_contain_text("approved")
    expect(rows.nth(1)).to_contain_text("refused")
    rows.nth(0).click()
    opened = page.locator(".decided-body")
    for words in ("Done, exit code 0", "It happened", "rm -rf", "by owner", "1.8 s"):
        expect(opened).to_contain_text(words)
    expect(opened.get_by_role("link", name="Open the run")).to_have_attribute(
        "href", "#/manage/activity/run-1"
    )
    page.get_by_role("switch", name="Also calls that only read").click()
    expect(rows).to_have_count(3)
    page.get_by_label("Part of a command").fill("reboot")
    expect(rows).to_have_count(1)
    page.get_by_label("Part of a command").fill("nothing of it")
    expect(page.get_by_text("No call matches these filters.")).to_be_visible()


def test_older_entries_of_the_trail_come_on_demand(stub: StubCrew, open_page: OpenPage) -> None:
    stub.look(lambda api: [api.records.call(f"tool_{number}") for number in range(130)])
    page = open_page("#/manage/audit")
    expect(page.locator(".trail-head")).to_have_count(100)
    page.get_by_role("button", name="Show more").click()
    expect(page.locator(".trail-head")).to_have_count(130)
    expect(page.get_by_role("button", name="Show more")).to_have_count(0)
    assert stub.look(lambda api: api.records.asked[-1]["before"]) == "entry-100"


def _mates(api: Any) -> None:
    first = api.house.members[0]
    api.house.members.append(
        {
            **first,
            "id": "lan",
            "name": "Lan",
            "master": False,
            "tools": ["workspace_read"],
            "warnings": ["No folder."],
        }
    )
    api.house.members.insert(0, {**first, "id": "amy", "name": "Amy", "master": False, "autonomous": True})


def test_the_matrix_says_who_holds_which_tool_and_what_asks(stub: StubCrew, open_page: OpenPage) -> None:
    stub.look(_mates)
    page = open_page("#/manage/tools")
    read = page.get_by_role("row", name=re.compile("workspace_read"))
    expect(read.get_by_role("cell")).to_have_text(["holds it", "holds it", "holds it"])
    run = page.get_by_role("row", name=re.compile("shell_run"))
    expect(run.get_by_role("cell")).to_have_text(["holds it", "holds it", "–does not hold it"])
    expect(run.get_by_role("rowheader")).to_contain_text("asks before it runs")


def test_figures_of_tools_name_failures_by_kind_and_poor_descriptions(
    stub: StubCrew, open_page: OpenPage
) -> None:
    def write(api: Any) -> None:
        api.records.uses = [
            shape(
                "ToolUse",
                tool="shell_run",
                agent_id="default",
                calls=40,
                failures=[shape("Count", name="timeout", count=3)],
                p50_ms=210,
            )
        ]
        api.records.faults = [
            shape(
                "DescriptionFaults",
                tool="workspace_edit",
                total=2,
                parameters=[shape("Count", name="old", count=2)],
            )
        ]

    stub.look(write)
    page = open_page("#/manage/tools/figures")
    row = page.get_by_role("row", name=re.compile("shell_run"))
    for words in ("40", "3 (8 %)", "out of time 3", "210 ms", "–"):
        expect(row).to_contain_text(words)
    expect(page.get_by_role("region", name="Where descriptions mislead")).to_contain_text(
        "Wrong arguments: old (2)"
    )
    with page.expect_request(lambda request: "days=30" in request.url):
        page.get_by_role("radio", name="30 days").click()


def test_the_crew_lists_its_agents_and_opens_one_with_its_prompt(stub: StubCrew, open_page: OpenPage) -> None:
    stub.look(_mates)
    page = open_page("#/manage/crew")
    cards = page.locator(".agent-card")
    expect(cards.locator(".agent-name")).to_have_text(["Pong", "Amy", "Lan"])
    expect(cards.nth(0)).to_contain_text("master")
    expect(cards.nth(2)).to_contain_text("No folder.")
    cards.nth(2).click()
    expect(page.locator("h1")).to_have_text("Lan")
    page.reload()
    expect(page.get_by_role("region", name="Prompt")).to_contain_text("You are lan.")
    expect(page.get_by_role("region", name="Tools")).to_contain_text("workspace_read")
    page.goto(f"{stub.address}/#/manage/crew/nobody")
    expect(page.get_by_role("alert").first).to_contain_text("There is no such agent.")


def _row(name: str, cost: float | None, calls: int, unknown: int = 0, **values: Any) -> dict[str, Any]:
    return shape(
        name,
        cost_usd=cost,
        calls=calls,
        unknown_cost_calls=unknown,
        prompt_tokens=1000,
        cached_tokens=500,
        completion_tokens=100,
        **values,
    )


@pytest.mark.spec("GTW-243")
def test_costs_of_today_and_seven_days_by_agent_model_day_and_purpose(
    stub: StubCrew, open_page: OpenPage
) -> None:
    def write(api: Any) -> None:
        today = datetime.now(UTC)
        day = [(today - timedelta(days=back)).strftime("%Y-%m-%d") for back in range(9)]
        api.records.stats = {
            "days": [
                _row("DayStats", 9.0, 50, day=day[8]),
                _row("DayStats", 0.5, 10, day=day[6]),
                _row("DayStats", None, 4, 4, day=day[1]),
                _row("DayStats", 0.25, 9, 2, day=day[0]),
            ],
            "models": [
                _row("ModelStats", None, 4, 4, provider="ollama", model="qwen3"),
                _row("ModelStats", 9.75, 69, 2, provider="openrouter", model="sonnet"),
            ],
            "purposes": [
                _row("PurposeStats", 9.75, 69, 2, purpose="turn"),
                _row("PurposeStats", None, 4, 4, purpose="mine"),
            ],
            "by_agent": [_row("AgentStats", 9.75, 73, 6, agent_id="default")],
            "cache_by_agent": [
                shape("AgentCacheStats", agent_id="default", prompt_tokens=10, cached_tokens=7)
            ],
        }

    stub.look(write)
    page = open_page("#/manage/costs", timezone_id="UTC")
    today = page.get_by_role("region", name="Today")
    expect(today.locator(".total-figure")).to_have_text("$0.2500 + unknown")
    expect(today).to_contain_text("2 calls have no known price and are not in the sum.")
    expect(today).to_contain_text("50 % from cache")
    week = page.get_by_role("region", name="Seven days")
    expect(week.locator(".total-figure")).to_have_text("$0.7500 + unknown")
    expect(week).to_contain_text("23 calls")
    days = page.get_by_role("region", name="By day").locator(".breakdown-cost")
    expect(days).to_have_text(["$0.2500 + unknown", "unknown", "$0", "$0", "$0", "$0", "$0.5000"])
    models = page.get_by_role("region", name="By model").get_by_role("listitem")
    expect(models).to_have_count(2)
    expect(models.nth(0)).to_contain_text("sonnetopenrouter$9.75 + unknown")
    expect(models.nth(1).locator(".breakdown-cost")).to_have_text("unknown")
    expect(page.get_by_role("region", name="By agent")).to_contain_text("70 % from cache")
    expect(page.get_by_role("region", name="By purpose").get_by_role("listitem").nth(1)).to_contain_text(
        "mine"
    )
    expect(page.get_by_role("region", name="Budgets")).to_have_count(0)


def test_a_spent_budget_is_passed_for_today_on_its_page(stub: StubCrew, open_page: OpenPage) -> None:
    budget = shape("Budget", scope="crew", period="day", limit_usd=2.0, spent_usd=2.4, state="spent")
    stub.look(lambda api: api.records.budgets.append(budget))
    page = open_page("#/manage/costs")
    panel = page.get_by_role("region", name="Budgets")
    expect(panel).to_contain_text("$2.40 / $2.00")
    expect(panel).to_contain_text("New turns ask before they go on.")
    panel.get_by_role("button", name="Go on today").click()
    expect(panel).to_contain_text("turns go on for today")
    assert stub.look(lambda api: api.records.go_on) is True


@pytest.mark.spec("GTW-254")
def test_a_section_that_breaks_shows_a_card_and_leaves_the_rest(stub: StubCrew, open_page: OpenPage) -> None:
    page = open_page("#/manage/activity")
    expect(page.locator("h1")).to_have_text("Activity")
    page.route("**/api/settings", lambda route: route.fulfill(json={"settings": None, "language": "en"}))
    page.get_by_role("link", name="Settings").click()
    card = page.get_by_role("alert")
    expect(card).to_contain_text("This part of the page failed")
    expect(card.get_by_role("button", name="Reload")).to_be_visible()
    page.get_by_role("navigation", name="Manage").get_by_role("link", name="Activity").click()
    expect(page.locator("h1")).to_have_text("Activity")
    expect(card).to_have_count(0)
    page.unroute("**/api/settings")
    page.get_by_role("link", name="Settings").click()
    expect(page.get_by_role("row", name=re.compile("^routes"))).to_be_visible()


@pytest.mark.spec("GTW-260")
def test_the_pills_of_a_phone_show_the_current_one_and_stay_where_they_were_put(
    stub: StubCrew, open_page: OpenPage
) -> None:
    page: Page = open_page("#/manage/settings", **phone())
    nav = page.get_by_role("navigation", name="Manage")
    current = nav.locator("[aria-current=page]")
    expect(current).to_have_text("Settings")
    expect(current).to_be_in_viewport(ratio=1)
    nav.evaluate("nav => { nav.scrollLeft = 0 }")
    stub.plan()
    stub.look(lambda api: api.state.tell_activity("conversation", conversation_id="x"))
    with page.expect_response("**/api/approvals/waiting"):
        pass
    assert nav.evaluate("nav => nav.scrollLeft") == 0
    nav.get_by_role("link", name="Costs").click()
    expect(page.locator("h1")).to_have_text("Costs")
    expect(current).to_have_text("Costs")
    expect(current).to_be_in_viewport(ratio=1)
