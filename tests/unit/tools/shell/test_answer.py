"""What the model is told of a command that has ended."""

from __future__ import annotations

from dataclasses import replace

import pytest

from services.common.toolhost.contract import ShellLimits, TextBlock, ToolError
from services.common.wording import load
from services.tools.shell.answer import Answer
from services.tools.shell.capture import CapturedOutput
from services.tools.shell.command import CommandResult
from services.tools.shell.guard.plan import Outcome

ANSWER = Answer(
    texts=load("tools"),
    locale="en",
    command="do something",
    timeout=5,
    limits=ShellLimits(),
    form="none",
    writable=(),
    network=True,
    ceiling=8000,
)


def ended(text: str = "", **fields: object) -> CommandResult:
    outcome = Outcome(**fields)  # type: ignore[arg-type]
    return CommandResult(CapturedOutput(text, "", 0, len(text)), outcome, 1.5)


def error_text(result: CommandResult, answer: Answer = ANSWER) -> str:
    with pytest.raises(ToolError) as caught:
        answer.of(result)
    return caught.value.text


@pytest.mark.spec("FLD-069", "PIP-052")
@pytest.mark.parametrize("ceiling", [300, 1000, 4000, 4100, 8000, 50_000])
def test_a_failure_of_any_length_keeps_its_status_at_the_end_and_counts_what_is_missing(ceiling: int) -> None:
    answer = replace(ANSWER, ceiling=ceiling)
    around = {*range(max(1, ceiling - 1000), ceiling + 1000, 37), *range(3000, 5000, 37), ceiling, 4000, 4001}
    for length in sorted(around):
        text = error_text(ended("#" * length, exit_code=3), answer)
        assert text.endswith("Exit code 3.")
        assert len(text) + len("Công cụ lỗi: ") <= ceiling
        missing = length - text.count("#")
        assert (f"[{missing} characters of output before this left out]" in text) == (missing > 0)


@pytest.mark.spec("TLS-250")
def test_a_failure_carries_exactly_the_last_4000_characters() -> None:
    printed = "".join(f"{number}\n" for number in range(1, 100_001))
    text = error_text(ended(printed, exit_code=1))
    mark, _, rest = text.partition("\n")
    assert rest == f"{printed[-4000:]}Exit code 1."
    assert mark == f"[{len(printed) - 4000} characters of output before this left out]"


@pytest.mark.spec("TLS-251")
def test_a_failure_without_output_still_says_the_exit_code() -> None:
    assert error_text(ended(exit_code=7)) == "Exit code 7.\nIt printed nothing."


@pytest.mark.spec("TLS-252")
def test_a_silent_success_is_said_in_words() -> None:
    assert ANSWER.of(ended(exit_code=0)).text == "The command succeeded and printed nothing."


@pytest.mark.spec("TLS-253")
def test_a_signal_is_named_whether_the_shell_or_its_command_got_it() -> None:
    assert "signal 9 (SIGKILL)" in error_text(ended(signal=9))
    assert "Exit code 143: ended by signal 15 (SIGTERM)" in error_text(ended(exit_code=143))


@pytest.mark.spec("PIP-160")
@pytest.mark.parametrize(
    ("text", "fields", "named"),
    [
        ("", {"ended": "processes"}, "256 processes"),
        ("", {"ended": "cpu"}, "600 seconds of processor time"),
        ("", {"exit_code": 152}, "600 seconds of processor time"),
        ("", {"exit_code": 153}, "1 GB for one file"),
        ("OSError: [Errno 27] File too large", {"exit_code": 1}, "1 GB for one file"),
        ("fork: Cannot allocate memory", {"exit_code": 1}, "4 GB of memory"),
    ],
)
def test_a_limit_that_was_reached_is_named(text: str, fields: dict[str, object], named: str) -> None:
    assert named in error_text(ended(text, **fields))


@pytest.mark.spec("TLS-281")
@pytest.mark.parametrize("form", ["bubblewrap", "landlock"])
def test_a_refused_write_comes_with_the_instruction_to_report_back(form: str) -> None:
    answer = replace(ANSWER, form=form, writable=("out",), network=False)  # type: ignore[arg-type]
    text = error_text(ended("y: Read-only file system\n", exit_code=1), answer)
    assert "`out`" in text
    assert "person's consent" in text
    assert "Status: BLOCKED" in text
    hidden_by_success = answer.of(ended("y: Permission denied\n", exit_code=0))
    assert "Status: BLOCKED" in hidden_by_success.text
    assert "BLOCKED" not in answer.of(ended("fine\n", exit_code=0)).text
    assert "BLOCKED" not in error_text(ended("y: Permission denied\n", exit_code=1))


@pytest.mark.spec("PIP-041", "PIP-136")
def test_a_cancelled_command_keeps_its_output_and_says_what_was_cancelled() -> None:
    result = ANSWER.of(ended("so far\n", ended="cancelled", signal=15))
    assert result.content[0] == TextBlock("so far\n")
    assert "`do something` was cancelled" in result.text
    assert (result.is_error, result.outcome) == (True, "unknown")


def test_a_command_that_was_never_begun_says_that_nothing_changed() -> None:
    with pytest.raises(ToolError) as caught:
        ANSWER.of(ended(failed_stage="files", failure="no such thing"))
    assert caught.value.outcome == "not_started"
    assert "no such thing" in caught.value.text
