"""What the model is told, and that it stays the same as long as nothing changed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from services.common.toolhost.contract import ToolSpec
from services.orchestrator.context.prompt import assemble
from services.orchestrator.context.system import moved_parts
from services.orchestrator.context.texts import read_texts
from services.orchestrator.store.records import Message, StoredCall
from tests.unit.orchestrator.calls.parts import agent_in

NOW = datetime(2026, 9, 25, 18, 30, tzinfo=UTC)


@pytest.fixture
def agent(tmp_path):
    return replace(agent_in(tmp_path / "home"), timezone="Asia/Ho_Chi_Minh")


def tool(name: str, kind: str, **fields) -> ToolSpec:
    return ToolSpec(name, "", {}, name, kind, "read", **fields)


TOOLS = [
    tool("workspace_write", "change"),
    tool("workspace_grep", "search", prompt_snippet="searches file contents"),
    tool("workspace_list", "search"),
    tool("ask_user", "user", guidelines=["`ask_user` is for real forks."]),
]


@pytest.mark.spec("AGT-168", "AGT-169", "AGT-170", "AGT-134", "AGT-137")
def test_stable_parts_come_first_in_their_order_and_the_date_last(agent):
    (agent.folder / "SOUL.md").write_text("I am calm.")
    (agent.folder / "AGENTS.md").write_text("I help.")
    (agent.home / "users" / "owner" / "USER.md").write_text("Lan, early riser.")
    prompt = assemble(agent, TOOLS, [], "en", NOW)
    places = [
        prompt.system.index(part)
        for part in (
            "You are Assistant",
            "workspace_grep",
            "## AGENTS.md\n\nI help.",
            "## SOUL.md",
            "Lan, early riser.",
        )
    ]
    assert places == sorted(places)
    assert prompt.system.endswith("\n\nToday: 2026-09-26.")
    assert prompt.system[prompt.stable_chars :] == "Today: 2026-09-26."
    assert assemble(agent, TOOLS, [], "vi", NOW).system.endswith("Hôm nay: 2026-09-26.")


@pytest.mark.spec("AGT-171", "PIP-120")
def test_unchanged_files_give_the_same_bytes_and_what_moved_is_named(agent):
    first = assemble(agent, TOOLS, [], "en", NOW)
    later = assemble(agent, TOOLS, [], "en", NOW + timedelta(days=1))
    assert first.system[: first.stable_chars] == later.system[: later.stable_chars]
    assert moved_parts(first.system_prompt.digests, later.system_prompt.digests) == []
    (agent.folder / "SOUL.md").write_text("I am new.")
    moved = assemble(agent, TOOLS[:2], [], "en", NOW)
    assert moved_parts(first.system_prompt.digests, moved.system_prompt.digests) == ["tools", "persona"]


@pytest.mark.spec("TRN-124", "TLS-072", "TLS-029", "AGT-172", "TLS-003")
@pytest.mark.parametrize(
    ("locale", "sentences"),
    [
        ("en", ["never an instruction", "say so", "belong in one message"]),
        ("vi", ["không bao giờ là mệnh lệnh", "nói là lỗi", "đặt chung trong một tin nhắn"]),
    ],
)
def test_the_frame_says_what_results_are_and_names_the_tools(agent, locale, sentences):
    system = assemble(agent, TOOLS, [], locale, NOW).system
    for sentence in sentences:
        assert sentence in system
    for spec in TOOLS:
        assert f"`{spec.name}`" in system


@pytest.mark.spec("PIP-116", "PIP-120")
def test_tools_are_grouped_by_kind_and_their_guidance_goes_with_them(agent):
    system = assemble(agent, TOOLS, [], "en", NOW).system
    search, change, user = (
        system.index(part)
        for part in ("`workspace_grep`, `workspace_list`", "`workspace_write`", "`ask_user`")
    )
    assert search < change < user
    assert "searches file contents" in system
    assert "searches file contents" not in assemble(agent, TOOLS[:1], [], "en", NOW).system


@pytest.mark.spec("AGT-135", "AGT-136", "AGT-173")
async def test_sections_are_cut_and_bad_files_passed_over(agent):
    (agent.folder / "AGENTS.md").write_text("ệ" * 30_000)
    (agent.folder / "SOUL.md").mkdir()
    (agent.folder / "IDENTITY.md").write_bytes(b"\xff\x00x")
    (agent.home / "users" / "owner" / "USER.md").write_text("u" * 5000)
    texts = await read_texts(agent)
    assert dict(texts.persona) == {"AGENTS.md": "ệ" * 24_000 + "…", "IDENTITY.md": "\ufffd\ufffdx"}
    assert texts.person == "u" * 4000 + "…"


def test_the_first_prompt_is_small(agent):
    assert len(assemble(agent, TOOLS, [], "vi", NOW).system.encode()) < 6_000


# --- messages ----------------------------------------------------------------------------------


class Log:
    """A conversation that grows."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def add(self, role: str, content: str, **fields) -> Message:
        number = len(self.messages) + 1
        author = {"user": "person", "assistant": "agent", "tool": "tool"}[role]
        message = Message(number, "conv", number, role, content, author, NOW, **fields)
        self.messages.append(message)
        return message

    def step(self, name: str, result: str, provider_id: str = "", **fields) -> StoredCall:
        call = StoredCall(f"uuid-{len(self.messages)}", name, '{"n":1.10}', provider_id)
        self.add("assistant", "", tool_calls=(call,))
        self.add("tool", result, tool_call_id=call.id, name=name, details='{"secret":1}', **fields)
        return call

    def sent(self, agent, locale="en"):
        return assemble(agent, [], self.messages, locale, NOW).messages


@pytest.mark.spec("FLD-002")
def test_a_repeated_provider_id_goes_out_under_our_own(agent):
    log = Log()
    first = log.step("a", "1", "call_0")
    before = log.sent(agent)
    second = log.step("a", "2", "call_0")
    third = log.step("a", "3", "")
    long = log.step("a", "4", "x" * 65)
    after = log.sent(agent)
    assert after[: len(before)] == before
    ids = [message.tool_calls[0].id for message in after if message.tool_calls]
    assert ids == ["call_0", second.id, third.id, long.id]
    assert [message.tool_call_id for message in after if message.role == "tool"] == ids
    assert first.id not in ids


@pytest.mark.spec("FLD-001")
def test_what_a_provider_needs_back_goes_with_its_message_and_details_never_do(agent):
    log = Log()
    log.add("user", "hi", context='{"secret":1}')
    log.step("a", "1")
    log.add("assistant", "done", opaque='{"r":1}')
    sent = log.sent(agent)
    assert sent[-1].opaque == '{"r":1}'
    assert sent[1].tool_calls[0].arguments == '{"n":1.10}'
    assert "secret" not in repr(sent)


@pytest.mark.spec("TRN-138")
def test_each_call_has_one_result_right_after_its_message(agent):
    log = Log()
    calls = (StoredCall("1", "a", "{}"), StoredCall("2", "b", "{}"))
    log.add("assistant", "", tool_calls=calls)
    log.add("user", "wait")
    log.add("tool", "two", tool_call_id="2")
    log.add("tool", "of nobody", tool_call_id="9")
    sent = log.sent(agent)
    assert [(message.role, message.tool_call_id) for message in sent] == [
        ("assistant", None),
        ("tool", "1"),
        ("tool", "2"),
        ("user", None),
    ]
    assert "may or may not have run" in sent[1].content
    assert "of nobody" not in repr(sent)


@pytest.mark.spec("TRN-119", "TLS-089", "AGT-198", "AGT-199", "AGT-200", "AGT-202")
def test_old_results_become_stubs_in_blocks_of_ten(agent):
    log = Log()
    for n in range(35):
        name = "delegate" if n == 3 else "look"
        log.step(name, f"{n} " + "x" * 5000, is_error=n == 5)
        results = [message.content for message in log.sent(agent) if message.role == "tool"]
        whole = [text.endswith("x" * 5000) for text in results]
        stubs = max(0, (n + 1) // 10 - 1) * 10
        assert whole == [i >= stubs or i == 3 for i in range(n + 1)]
        assert all(whole[-10:])
    assert "look" in results[0]
    assert "5002 characters" in results[0]
    assert "error" in results[5]
    assert log.messages[1].content.startswith("0 xxx")


@pytest.mark.spec("TRN-121", "TLS-089")
def test_the_messages_only_grow_between_two_blocks(agent):
    log = Log()
    log.add("user", "go")
    previous = log.sent(agent)
    changes = 0
    for n in range(45):
        log.step("look", str(n % 10) * 5000)
        sent = log.sent(agent)
        if sent[: len(previous)] != previous:
            changes += 1
        previous = sent
    assert changes == 3


def test_results_that_are_few_characters_together_stay_as_they_are(agent):
    log = Log()
    log.add("user", "go")
    for n in range(60):
        before = log.sent(agent)
        log.step("look", str(n % 10) * 600)
        assert log.sent(agent)[: len(before)] == before


@pytest.mark.spec("TLS-087")
def test_short_results_stay_as_they_are(agent):
    log = Log()
    for _ in range(25):
        log.step("look", "short")
    log.step("look", "x" * 50_000)
    assert [message.content for message in log.sent(agent) if message.role == "tool"][:25] == ["short"] * 25
