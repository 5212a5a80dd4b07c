"""The guard: starts one command, watches over its limits, and ends all it started.

It ends the command when its shell has ended, when the service says so, when a limit is reached, and
when the service is gone: the control pipe closes with the service, however that ends (TLS-311).
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import sys
import time

from services.common.confinement import kernel
from services.tools.shell.guard import tree
from services.tools.shell.guard.confine import StageFailed, become_command, confine_guard
from services.tools.shell.guard.plan import END_FOR_CANCELLATION, Ended, Outcome, Plan

# Between asking a command to end and killing it (TLS-249); PIP-041 allows 2 s for everything.
GRACE_SECONDS = 0.5
_END_SECONDS = 3.0
_TICK_SECONDS = 0.05
_LOOK_SECONDS = 1.0
# bubblewrap itself: the process outside its namespace, and the one that is process 1 within.
_BUBBLEWRAP_PROCESSES = 2


def main() -> None:
    """Run the plan behind the inherited descriptors and report its outcome (see `command.py`)."""
    plan_descriptor, control, report = (int(argument) for argument in sys.argv[-3:])
    plan = _read_plan(plan_descriptor)
    for descriptor in (control, report, plan.ports_ruleset):
        if descriptor >= 0:
            os.set_inheritable(descriptor, False)
    try:
        outcome = _Guard(plan, control).run()
    except StageFailed as failed:
        outcome = Outcome(failed_stage=failed.stage, failure=failed.reason)
    with contextlib.suppress(BrokenPipeError):
        os.write(report, outcome.to_json())


def _read_plan(descriptor: int) -> Plan:
    with open(descriptor, "rb") as file:
        file.seek(0)
        return Plan.from_json(file.read())


class _Guard:
    def __init__(self, plan: Plan, control: int) -> None:
        self._plan = plan
        self._control = control
        self._wake, self._wake_writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._status: int | None = None
        self._child = 0
        self._ended: Ended | None = None
        self._kill_at = 0.0
        self._looked_at = 0.0
        self._pid_then = 0
        self._cpu_seconds = 0.0

    def run(self) -> Outcome:
        kernel.become_subreaper()
        signal.set_wakeup_fd(self._wake_writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: None)
        scoped = confine_guard(self._plan)
        status_reader, status_writer = os.pipe2(os.O_CLOEXEC)
        self._start(status_writer)
        os.close(status_writer)
        self._watch()
        survivors = tree.end_all_in_scope(_END_SECONDS) if scoped else tree.end_descendants(_END_SECONDS)
        outcome = Outcome(ended=self._ended, cpu_seconds=self._cpu_seconds, survivors=survivors)
        self._add_exit(outcome, status_reader)
        return outcome

    def _start(self, status_writer: int) -> None:
        failures, failures_writer = os.pipe2(os.O_CLOEXEC)
        self._pid_then = tree.last_pid()
        tasks = tree.tasks_on_machine()
        self._child = os.fork()
        if self._child == 0:
            # Whatever happens, this process must not go on as a second guard.
            try:
                signal.set_wakeup_fd(-1)
                for number in (signal.SIGCHLD, signal.SIGTERM):
                    signal.signal(number, signal.SIG_DFL)
                become_command(self._plan, status_writer, tasks)
            except StageFailed as failed:
                os.write(failures_writer, json.dumps([failed.stage, failed.reason]).encode())
            finally:
                os._exit(127)
        os.close(failures_writer)
        # Closed by `exec`, so empty when the command runs.
        with open(failures, "rb") as file:
            failure = file.read()
        if failure:
            stage, reason = json.loads(failure)
            raise StageFailed(stage, reason)

    def _watch(self) -> None:
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        while self._status is None:
            ready = {descriptor for descriptor, _ in poll.poll(_TICK_SECONDS * 1000)}
            if self._wake in ready:
                self._take_signals()
            if self._control in ready and self._take_control():
                poll.unregister(self._control)
            now = time.monotonic()
            if self._ended is None:
                self._check_limits(now)
            elif now >= self._kill_at:
                return

    def _take_signals(self) -> None:
        if signal.SIGTERM in os.read(self._wake, 4096):
            self._end("service_gone")
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self._child:
                self._status = status

    def _take_control(self) -> bool:
        """Obey the service; True when it will say no more."""
        word = os.read(self._control, 1)
        if not word:
            self._end("service_gone")
        else:
            self._end("cancelled" if word == END_FOR_CANCELLATION else "timeout")
        return not word

    def _end(self, reason: Ended) -> None:
        if self._ended is not None:
            return
        self._ended = reason
        self._kill_at = time.monotonic()
        if reason == "processes":
            tree.take_precedence()
        if reason in ("timeout", "cancelled"):
            self._kill_at += GRACE_SECONDS
            self._ask_to_end()

    def _ask_to_end(self) -> None:
        for process in tree.descendants(os.getpid()):
            # bubblewrap would take its whole namespace along at once.
            if self._plan.form == "bubblewrap" and process.pid == self._child:
                continue
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, signal.SIGTERM)

    def _check_limits(self, now: float) -> None:
        started = tree.last_pid() - self._pid_then
        # Ids go round; a smaller one counts as many.
        if 0 <= started < self._plan.limits.processes // 4 and now - self._looked_at < _LOOK_SECONDS:
            return
        self._looked_at = now
        self._pid_then += started
        processes = tree.descendants(os.getpid())
        spent = resource.getrusage(resource.RUSAGE_CHILDREN)
        running = sum(process.cpu_seconds for process in processes)
        self._cpu_seconds = max(self._cpu_seconds, spent.ru_utime + spent.ru_stime + running)
        alive = sum(not process.ended for process in processes)
        if self._plan.form == "bubblewrap":
            alive -= _BUBBLEWRAP_PROCESSES
        if alive > self._plan.limits.processes:
            self._end("processes")
        elif self._cpu_seconds > self._plan.limits.cpu_seconds:
            self._end("cpu")

    def _add_exit(self, outcome: Outcome, status_reader: int) -> None:
        with open(status_reader, "rb") as file:
            reported = file.read()
        if self._status is None:
            return
        code = os.waitstatus_to_exitcode(self._status)
        if code >= 0:
            outcome.exit_code = code
        else:
            outcome.signal = -code
        # Without the word of bubblewrap that the command ran, its own exit code is about itself.
        if self._plan.form == "bubblewrap" and outcome.ended is None and b'"exit-code"' not in reported:
            outcome.failed_stage = "bubblewrap"
            outcome.failure = f"exit code {code}"


if __name__ == "__main__":
    main()
