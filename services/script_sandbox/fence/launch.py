"""Turns a fresh process into an interpreter behind its fence. Every step is final.

`launch.py PLAN… worker…` becomes the interpreter; `launch.py PLAN… --try PID` stands behind the same
fence and tries to get out of it, for the probe.
"""

from __future__ import annotations

import os
import resource
import sys

if __name__ == "__main__":
    # Appended, so that nothing here can stand before the standard library.
    sys.path.append(os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3)))

from services.common.confinement import kernel, landlock
from services.script_sandbox.fence.calls import interpreter_filter
from services.script_sandbox.fence.namespaces import enter_namespaces
from services.script_sandbox.fence.plan import FencePlan

_NICENESS = 5
TRY = "--try"


def main() -> None:
    """Shut this process in as planned and become the interpreter, or try the fence."""
    plan, arguments = FencePlan.read(sys.argv[1:])
    if arguments[:1] == [TRY]:
        # Imported before the fence, behind which no file can be read.
        from services.script_sandbox.fence.attempts import try_everything

        shut_in(plan)
        try_everything(int(arguments[1]))
        return
    shut_in(plan)
    os.execve(plan.program, ["monty", *arguments], {})


def shut_in(plan: FencePlan) -> None:
    """Put this process behind the fence, for good.

    Raises:
        OSError: The kernel refused a step; the process must end.
    """
    os.nice(_NICENESS)
    kernel.die_with_parent()
    files = tuple(dict.fromkeys(plan.files))
    if plan.form == "namespaces":
        enter_namespaces(files)
    else:
        os.chdir("/")
    kernel.drop_capabilities()
    kernel.give_up_new_privileges()
    _set_limits(plan)
    if landlock.abi():
        _close_files(files)
    elif plan.form == "landlock":
        raise OSError("this kernel has no Landlock")
    kernel.install_filter(interpreter_filter(kernel.machine()))


def _close_files(files: tuple[str, ...]) -> None:
    version = landlock.abi()
    known = landlock.ALL_FILE_ACCESS
    for since, bit in ((2, landlock.REFER), (3, landlock.TRUNCATE), (5, landlock.IOCTL_DEV)):
        if version < since:
            known &= ~bit
    scoped = version >= landlock.COMPLETE_ABI
    ruleset = landlock.create_ruleset(
        files=known,
        scopes=landlock.SCOPE_ABSTRACT_SOCKETS | landlock.SCOPE_SIGNALS if scoped else 0,
    )
    for path in files:
        landlock.allow_beneath(ruleset, os.path.realpath(path), landlock.EXECUTE | landlock.READ_FILE)
    landlock.enter(ruleset)
    os.close(ruleset)


def _set_limits(plan: FencePlan) -> None:
    wanted = (
        # The soft limit's signal ends the interpreter; a second later the kernel does.
        (resource.RLIMIT_CPU, plan.cpu_seconds, plan.cpu_seconds + 1),
        (resource.RLIMIT_AS, plan.memory_bytes, plan.memory_bytes),
        (resource.RLIMIT_FSIZE, 0, 0),
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_NOFILE, plan.open_files, plan.open_files),
        (resource.RLIMIT_MEMLOCK, 0, 0),
        (resource.RLIMIT_MSGQUEUE, 0, 0),
    )
    for kind, soft, hard in wanted:
        _, most = resource.getrlimit(kind)
        if most != resource.RLIM_INFINITY:
            soft, hard = min(soft, most), min(hard, most)
        resource.setrlimit(kind, (soft, hard))


if __name__ == "__main__":
    main()
