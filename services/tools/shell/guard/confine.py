"""Turning the forked child into the confined command. Every step here is final for the process."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from services.common.confinement import kernel, landlock
from services.tools.shell.guard.plan import Limits, Plan, Stage
from services.tools.shell.sandbox.seccomp import FilterRules, build_filter

_TASKS_PER_PROCESS = 4


class StageFailed(Exception):
    """A step of setting up was refused; the command must not run."""

    def __init__(self, stage: Stage, reason: str) -> None:
        super().__init__(reason)
        self.stage: Stage = stage
        self.reason = reason


@contextmanager
def stage(name: Stage) -> Iterator[None]:
    """Name the step in which an error of the operating system happens."""
    try:
        yield
    except (OSError, KeyError, ValueError) as error:
        raise StageFailed(name, str(error)) from error


def confine_guard(plan: Plan) -> bool:
    """Take from this process what neither it nor the command needs.

    Returns:
        Whether the process is in a scope of its own: what it may signal is then the command alone.

    Raises:
        StageFailed: The kernel refused a step.
    """
    if plan.form == "none":
        return False
    with stage("privileges"):
        # As root, a user namespace can only be given root's id by one who holds this (kernel 5.12).
        kept = (kernel.CAP_SETFCAP,) if plan.form == "bubblewrap" and os.geteuid() == 0 else ()
        kernel.drop_capabilities(keep=kept)
        kernel.give_up_new_privileges()
    if landlock.abi() < landlock.COMPLETE_ABI:
        return False
    with stage("privileges"):
        scope = landlock.create_ruleset(scopes=landlock.SCOPE_ABSTRACT_SOCKETS | landlock.SCOPE_SIGNALS)
        landlock.enter(scope)
        os.close(scope)
        _prove_scope()
    return True


def _prove_scope() -> None:
    try:
        os.kill(os.getppid(), 0)
    except PermissionError:
        return
    raise OSError("the signal scope is not in force")


def become_command(plan: Plan, status_descriptor: int, tasks: int) -> None:
    """Confine this process as planned and become the command; does not return.

    Args:
        plan: What to run and how.
        status_descriptor: Where bubblewrap reports; used by its form alone.
        tasks: Processes and threads on the machine before the command.

    Raises:
        StageFailed: A step was refused. The caller must end the process.
    """
    os.setsid()
    os.umask(plan.umask)
    # The interpreter ignores these two, and a command would inherit that.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    with stage("workspace"):
        os.chdir(plan.directory)
    arguments = list(plan.arguments)
    match plan.form:
        case "none":
            pass
        case "bubblewrap":
            arguments = [*_enter_bubblewrap(plan, status_descriptor), *arguments]
        case "landlock":
            _enter_landlock(plan)
    with stage("limits"):
        _set_limits(plan.limits, tasks)
    with stage("program"):
        os.execve(arguments[0], arguments, plan.environment)


def _set_limits(limits: Limits, tasks: int) -> None:
    wanted = {
        # Counts every thread of the user and so can only be a wide net; the guard counts exactly.
        resource.RLIMIT_NPROC: tasks + limits.processes * _TASKS_PER_PROCESS,
        # The guard counts over the whole command and ends it first; this is for what outruns it.
        resource.RLIMIT_CPU: limits.cpu_seconds + 2,
        resource.RLIMIT_AS: limits.memory_bytes,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_CORE: 0,
    }
    for kind, value in wanted.items():
        _, hard = resource.getrlimit(kind)
        bounded = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (bounded, bounded))


def _enter_ports(plan: Plan) -> None:
    if plan.ports_ruleset >= 0:
        with stage("ports"):
            landlock.enter(plan.ports_ruleset)


def _enter_bubblewrap(plan: Plan, status_descriptor: int) -> list[str]:
    with stage("filter"):
        program = build_filter(FilterRules(plan.network, own_namespaces=True), kernel.machine())
        descriptor = os.memfd_create("filter", 0)
        os.write(descriptor, program)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.set_inheritable(status_descriptor, True)
    _enter_ports(plan)
    return [
        *plan.bubblewrap,
        *("--chdir", plan.directory),
        *("--seccomp", str(descriptor)),
        *("--json-status-fd", str(status_descriptor)),
        "--",
    ]


def _enter_landlock(plan: Plan) -> None:
    with stage("files"):
        ruleset = landlock.create_ruleset(
            files=landlock.ALL_FILE_ACCESS,
            scopes=landlock.SCOPE_ABSTRACT_SOCKETS | landlock.SCOPE_SIGNALS,
        )
        for paths, access in (
            (plan.readable, landlock.READ_AND_RUN),
            (plan.writable, landlock.WRITE_BENEATH),
            (plan.devices, landlock.USE_DEVICE),
        ):
            for path in paths:
                landlock.allow_beneath(ruleset, path, access)
        landlock.enter(ruleset)
        os.close(ruleset)
    _enter_ports(plan)
    with stage("filter"):
        kernel.install_filter(build_filter(FilterRules(plan.network, own_namespaces=False), kernel.machine()))
