"""Programs that run whatever they are given, so that allowing one allows everything (FLD-019)."""

from __future__ import annotations

RUNNERS = frozenset(
    """
    sh bash dash zsh fish ksh csh tcsh python python2 python3 perl ruby node nodejs deno bun npx npm
    pnpm yarn uv uvx pipx pip make cmake awk gawk mawk sed php lua tclsh busybox sudo su doas nohup
    timeout nice setsid time watch parallel ssh docker podman find expect script
    """.split()  # noqa: SIM905 - a name a line would hide the list
)
