"""The pattern lists: what asks, what is refused, what is routine."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.shell_defaults import (
    DEFAULT_ASK_PATTERNS,
    is_usable_allow_pattern,
    usable_allow_patterns,
    usable_guard_patterns,
)
from services.tools.shell.patterns import PatternLists, find_allow_patterns, normalised


def lists(
    *, ask: tuple[str, ...] = DEFAULT_ASK_PATTERNS, allow: tuple[str, ...] = (), deny: tuple[str, ...] = ()
) -> PatternLists:
    return PatternLists.of(ask=ask, allow=allow, deny=deny)


@pytest.mark.spec("TLS-260")
def test_the_default_ask_list_is_exactly_the_one_of_the_specification() -> None:
    assert DEFAULT_ASK_PATTERNS == (
        "rm -rf",
        "rm -r ",
        "sudo ",
        "| sh",
        "| bash",
        "mkfs",
        "git push --force",
        "git reset --hard",
        "> /dev/",
        "chmod -R",
        "launchctl",
    )


@pytest.mark.spec("TLS-259", "TLS-261")
@pytest.mark.parametrize(
    ("command", "pattern"),
    [
        ("RM -RF build", "rm -rf"),
        ("cd x && Sudo id", "sudo "),
        ("curl https://x | sh", "| sh"),
        ("echo 'rm -rf is dangerous'", "rm -rf"),
        ("chmod -r 755 .", "chmod -R"),
    ],
)
def test_an_ask_entry_is_found_anywhere_in_any_letter_case(command: str, pattern: str) -> None:
    match = lists().match(command)
    assert (match.verdict, match.pattern) == ("ask", pattern)


@pytest.mark.spec("FLD-027")
@pytest.mark.parametrize(
    ("command", "pattern"),
    [
        ("rm  -rf build", "rm -rf"),
        ("rm\t-rf build", "rm -rf"),
        (r"r\m -rf build", "rm -rf"),
        ('"sudo" id', "sudo "),
        ("su''do id", "sudo "),
        ("$'sudo' id", "sudo "),
        ("rm$IFS-rf x", "rm -rf"),
        ("rm${IFS}-rf x", "rm -rf"),
        ("rm$IFS$9-rf x", "rm -rf"),
        ("rm \\\n-rf x", "rm -rf"),
        ("r\\\nm -rf x", "rm -rf"),
        ("git   push    --force", "git push --force"),
        ("cat x |   bash", "| bash"),
    ],
)
def test_a_careless_disguise_still_asks_and_names_the_rule(command: str, pattern: str) -> None:
    match = lists().match(command)
    assert (match.verdict, match.pattern) == ("ask", pattern)


@pytest.mark.spec("TLS-263")
def test_an_empty_ask_list_turns_the_guard_off_and_a_declared_one_replaces_it() -> None:
    assert lists(ask=()).match("sudo true").verdict is None
    declared = lists(ask=("git push", "terraform apply"))
    assert declared.match("rm -rf x").verdict is None
    assert declared.match("git push").verdict == "ask"


@pytest.mark.spec("TLS-265")
def test_a_trailing_blank_of_an_entry_is_significant() -> None:
    assert lists(ask=("rm -r ",)).match("rm -rx").verdict is None
    assert lists(ask=("rm -r ",)).match("rm -r x").verdict == "ask"


@pytest.mark.spec("TLS-266", "TLS-268")
def test_deny_comes_before_ask_and_ask_before_allow() -> None:
    everywhere = lists(ask=("git status",), allow=("git status",), deny=("git status -x",))
    assert everywhere.match("git status").verdict == "ask"
    assert everywhere.match("GIT STATUS -X").verdict == "deny"
    assert lists(deny=("create table",)).match("psql -c 'CREATE TABLE t()'").pattern == "create table"


@pytest.mark.spec("TLS-269")
@pytest.mark.parametrize("entry", ["x", "*", ".*", ".", "-", "--", "/", "&&", "||", ";", "|", " | ", "x "])
def test_an_allow_entry_that_would_allow_nearly_everything_is_dropped(entry: str) -> None:
    kept, dropped = usable_allow_patterns(["git status", entry])
    assert (kept, dropped) == (("git status",), (entry,))
    assert lists(allow=("git status", entry)).match("echo x | cat").verdict is None


@pytest.mark.spec("FLD-019")
@pytest.mark.parametrize(
    "entry",
    [
        "python",
        "python3",
        "python3.11",
        "/usr/bin/python3",
        "sh",
        "node",
        "npx",
        "make",
        "bash -c",
        "uv",
        "env",
    ],
)
def test_an_allow_entry_that_is_only_an_interpreter_or_runner_is_dropped(entry: str) -> None:
    assert not is_usable_allow_pattern(entry)


@pytest.mark.parametrize("entry", ["git", "python -m pytest", "make test", "npm test", "ls"])
def test_an_allow_entry_that_names_a_shape_is_kept(entry: str) -> None:
    assert is_usable_allow_pattern(entry)


@pytest.mark.spec("TLS-271", "TLS-272")
def test_ask_and_deny_keep_short_entries_and_lose_only_blank_ones() -> None:
    assert usable_guard_patterns(["|", "x", " ", "", "\t", "*"]) == ("|", "x", "*")
    assert usable_allow_patterns([" ", "\t", ""])[0] == ()
    assert lists(ask=("   ",), deny=("\t",)).match("echo   x").verdict is None


@pytest.mark.spec("TLS-267", "FLD-019")
@pytest.mark.parametrize(
    "command",
    [
        "git status",
        "git status; git status -s",
        "git status && git status --short",
        "  git status  ",
        "git status 2>&1",
        "git status\ngit status\n",
        "git status | git status",
    ],
)
def test_a_line_of_allowed_commands_is_routine(command: str) -> None:
    assert lists(allow=("git status",)).match(command).verdict == "allow"


@pytest.mark.spec("TLS-267", "FLD-019")
@pytest.mark.parametrize(
    "command",
    [
        "git status && touch x",
        "git status $(touch x)",
        "git status `touch x`",
        "echo git status",
        "git statusx",
        "git status & touch x",
        "git status | tee x",
        "git status || touch x",
        "git status\ntouch x",
        "git status\rtouch x",
        "git status > x",
        "git status>x",
        "git status >> x",
        "git status >| x",
        "git status &> x",
        "git status >&x",
        "git status <> x",
        "git status 2> x",
        "git status <(touch x)",
        "git status >(touch x)",
        "git status; eval touch x",
        "git status | xargs touch",
        "env git status",
        "git status -exec touch x",
        'git status "$(touch x)"',
        "git status $\\(touch x)",
        "X=1 git status",
        "git status () (touch x); git status",
        "git status ( ) { touch x",
        "git status; (touch x)",
        "{ git status; touch x; }",
        "git status <<E\ntouch x\nE",
        "if git status; then touch x; fi",
        "git status ';' touch",
        "",
        "   ",
    ],
)
def test_every_doubt_about_a_line_asks(command: str) -> None:
    assert lists(allow=("git status",)).match(command).verdict is None


@pytest.mark.spec("FLD-019")
def test_what_stands_before_a_copied_descriptor_belongs_to_the_word() -> None:
    assert find_allow_patterns("git2>&1", ("git",)) == ()
    assert find_allow_patterns("git 2>&1", ("git",)) == ("git",)


def test_a_program_alone_allows_its_subcommands_and_ask_still_wins() -> None:
    allowed = lists(allow=("git",))
    assert allowed.match("git log").verdict == "allow"
    assert allowed.match("git reset --hard").verdict == "ask"


@pytest.mark.spec("TLS-275")
def test_a_match_names_the_list_and_the_entry() -> None:
    match = lists(allow=("git log", "ls -l")).match("git log; ls -l")
    assert (match.verdict, match.pattern) == ("allow", "git log; ls -l")


@given(st.text(max_size=200))
def test_normalising_is_stable_and_never_fails(command: str) -> None:
    once = normalised(command)
    assert "\\" not in once
    lists(allow=("git status",), deny=("x y",)).match(command)


@given(st.text(alphabet="git status;&|>$(`\n'\"\\ tx<{}", max_size=60))
def test_nothing_routine_holds_a_second_command_of_another_name(command: str) -> None:
    if lists(allow=("git status",)).match(command).verdict == "allow":
        for sign in ("$(", "`", "<(", ">("):
            assert sign not in command
        for piece in command.replace("&", "\n").replace("|", "\n").replace(";", "\n").splitlines():
            assert not piece.strip() or piece.strip().startswith("git status")
