"""The sandbox as the shell uses it: choosing a form by trial, and confining one command."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import sys
from collections.abc import Iterable, Sequence
from typing import get_args

import structlog

from services.common.confinement import kernel, landlock
from services.common.confinement.syscalls import ARCHITECTURES
from services.tools.shell.guard.plan import Plan
from services.tools.shell.sandbox.bubblewrap import bubblewrap_arguments, find_bubblewrap
from services.tools.shell.sandbox.fallback import DEVICES, readable_paths, writable_paths
from services.tools.shell.sandbox.policy import PolicyRefused, SandboxPolicy
from services.tools.shell.sandbox.probe import try_form
from services.tools.shell.sandbox.report import SandboxForm, SandboxReport, Shortcoming, host_isolation

_log = structlog.get_logger(__name__)

FORMS: tuple[SandboxForm, ...] = get_args(SandboxForm)
# Each takes 0.1 s to make; the crew has one set of ports.
_MAX_PORT_SETS = 64


class ShellSandbox:
    """The sandbox of this host.

    Args:
        hidden: Paths of the service itself that no sandboxed command may see, such as its secrets.
        closed_ports: TCP ports closed besides those each grant names.
        forms: The forms to try, best first.
    """

    def __init__(
        self,
        *,
        hidden: Iterable[str] = (),
        closed_ports: Iterable[int] = (),
        forms: Sequence[SandboxForm] = FORMS,
    ) -> None:
        self.hidden = tuple(hidden)
        self.closed_ports = tuple(closed_ports)
        self._forms = tuple(forms)
        self._report: SandboxReport | None = None
        self._rulesets: dict[frozenset[int], int] = {}
        self._lock = asyncio.Lock()

    @property
    def report(self) -> SandboxReport:
        """What `probe` found; before it, that nothing works."""
        return self._report or SandboxReport(None, host_isolation(None))

    async def probe(self) -> SandboxReport:
        """Run commands in each form until one holds, and remember it (TLS-286).

        A form of which one single rule does not hold counts as none (TLS-287).
        """
        shortcomings: dict[SandboxForm, Shortcoming] = {}
        for form in self._forms:
            shortcoming = _missing(form) or await try_form(self, form, network=False)
            if shortcoming is not None:
                shortcomings[form] = shortcoming
                _log.warning("shell_sandbox_form_not_used", form=form, reason=shortcoming.text("en"))
                continue
            network = await self._try_network(form)
            self._report = SandboxReport(
                form,
                host_isolation(form),
                keeps_network=network is None,
                shortcomings=shortcomings,
                network_shortcoming=network,
            )
            break
        else:
            self._report = SandboxReport(None, host_isolation(None), shortcomings=shortcomings)
        _log.info("shell_sandbox_probed", form=self._report.form, isolation=self._report.isolation)
        return self._report

    async def _try_network(self, form: SandboxForm) -> Shortcoming | None:
        if (abi := landlock.abi()) < landlock.PORTS_ABI:
            return Shortcoming("kernel_ports", {"abi": abi, "needed": landlock.PORTS_ABI})
        return await try_form(self, form, network=True)

    async def confine(self, plan: Plan, policy: SandboxPolicy, form: SandboxForm | None = None) -> Plan:
        """Put a plan under a policy.

        Args:
            plan: An unconfined command.
            policy: What it may touch.
            form: Which form; that of the report when None.

        Raises:
            PolicyRefused: No form works here.
        """
        form = form or self.report.form
        if form is None:
            raise PolicyRefused("error.shell.no_sandbox")
        ports = await self._ports_ruleset(policy.closed_ports) if policy.network else -1
        return await asyncio.to_thread(_confined, plan, policy, form, ports)

    async def _ports_ruleset(self, closed: frozenset[int]) -> int:
        async with self._lock:
            if closed not in self._rulesets:
                if len(self._rulesets) >= _MAX_PORT_SETS:
                    raise PolicyRefused("error.shell.too_many_port_sets", limit=str(_MAX_PORT_SETS))
                self._rulesets[closed] = await asyncio.to_thread(landlock.ports_ruleset, closed)
            return self._rulesets[closed]

    def close(self) -> None:
        """Give back what was kept for commands to come."""
        for descriptor in self._rulesets.values():
            os.close(descriptor)
        self._rulesets.clear()


def _missing(form: SandboxForm) -> Shortcoming | None:
    """What can be said without running anything; presence alone proves nothing."""
    if sys.platform != "linux":
        return Shortcoming("not_linux")
    if kernel.machine() not in ARCHITECTURES:
        return Shortcoming("architecture", {"machine": kernel.machine()})
    match form:
        case "bubblewrap":
            return None if find_bubblewrap() else Shortcoming("not_installed")
        case "landlock":
            abi = landlock.abi()
            if abi == 0:
                return Shortcoming("no_landlock")
            if abi < landlock.COMPLETE_ABI:
                return Shortcoming("kernel_too_old", {"abi": abi, "needed": landlock.COMPLETE_ABI})
            return None


def _confined(plan: Plan, policy: SandboxPolicy, form: SandboxForm, ports: int) -> Plan:
    common = dataclasses.replace(
        plan, form=form, directory=str(policy.workspace), network=policy.network, ports_ruleset=ports
    )
    match form:
        case "bubblewrap":
            program = find_bubblewrap()
            if program is None:
                raise PolicyRefused("error.shell.no_sandbox")
            return dataclasses.replace(
                common,
                environment={**plan.environment, "TMPDIR": "/tmp"},  # noqa: S108 - the agent's own, TLS-301
                bubblewrap=bubblewrap_arguments(program, policy),
            )
        case "landlock":
            return dataclasses.replace(
                common,
                environment={**plan.environment, "TMPDIR": str(policy.temp_dir)},
                readable=readable_paths(policy, plan.environment.get("PATH", "")),
                writable=writable_paths(policy),
                devices=tuple(device for device in DEVICES if os.path.exists(device)),
            )
