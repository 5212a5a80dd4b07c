"""The shell's pattern lists as every service reads them: the default, and which entries can be used.

Settings, profiles and the tools service all apply these rules, so that what an owner is warned of at
the start is what the tools service leaves out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

# TLS-260: exactly these, trailing blanks included.
DEFAULT_ASK_PATTERNS: tuple[str, ...] = (
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

# TLS-269: allowed, each of these would let nearly every command through.
_TOO_WIDE = frozenset({"*", ".*", ".", "-", "--", "/", "&&", "||", ";", "|"})
_SHORTEST_ALLOWED = 2

# FLD-019: allowed by name alone, each of these runs whatever it is given.
_RUNS_ANYTHING = frozenset(
    {
        *("sh", "ash", "bash", "dash", "fish", "ksh", "mksh", "pwsh", "tcsh", "csh", "zsh", "busybox"),
        *("awk", "gawk", "mawk", "nawk", "lua", "luajit", "perl", "php", "pypy", "python", "ruby", "tclsh"),
        *("bun", "deno", "java", "node", "nodejs", "osascript", "rscript", "ts-node", "tsx"),
        *("bunx", "npm", "npx", "pipx", "pnpm", "poetry", "uv", "uvx", "yarn"),
        *("gmake", "just", "make", "rake"),
        *("builtin", "command", "doas", "env", "eval", "exec", "nice", "nohup", "parallel", "setsid"),
        *("ssh", "stdbuf", "strace", "sudo", "time", "timeout", "watch", "xargs"),
    }
)
_VERSION_SUFFIX = re.compile(r"[0-9.]+$")


def is_usable_allow_pattern(pattern: str) -> bool:
    """Whether an entry of `shell_allow_patterns` names a shape of command (TLS-269, TLS-272, FLD-019).

    An entry that is shorter than two characters, only looks like a wildcard, or is only an
    interpreter, shell or package runner (with or without options) is not used: the command then asks.
    """
    text = pattern.strip()
    if len(text) < _SHORTEST_ALLOWED or text in _TOO_WIDE:
        return False
    program, *rest = text.split()
    name = _VERSION_SUFFIX.sub("", program.rsplit("/", 1)[-1].lower())
    return name not in _RUNS_ANYTHING or any(not word.startswith("-") for word in rest)


def usable_allow_patterns(patterns: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split entries of `shell_allow_patterns` into those in force and those dropped."""
    kept: list[str] = []
    dropped: list[str] = []
    for pattern in patterns:
        (kept if is_usable_allow_pattern(pattern) else dropped).append(pattern)
    return tuple(kept), tuple(dropped)


def usable_guard_patterns(patterns: Iterable[str]) -> tuple[str, ...]:
    """The entries of an ask or deny list in force: all but those of blanks alone.

    Short and wildcard-looking entries stay, since dropping one would fail open (TLS-271, TLS-272).
    """
    return tuple(pattern for pattern in patterns if pattern.strip())
