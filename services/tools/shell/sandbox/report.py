"""What the probe proved, for the owner, the health answer and the gate."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from services.common.toolhost.contract import Isolation
from services.common.wording import Locale, load

SandboxForm = Literal["bubblewrap", "landlock"]

# The kernel gives the first PID namespace this inode (`PROC_PID_INIT_INO`).
_FIRST_PID_NAMESPACE = 0xEFFFFFFC
_CONTAINER_MARKS = ("/.dockerenv", "/run/.containerenv")


@dataclass(frozen=True, slots=True)
class Shortcoming:
    """Why a form is not in use, as a catalogue key below `shell.why` and its values."""

    key: str
    values: Mapping[str, object] = field(default_factory=dict)

    def text(self, locale: Locale) -> str:
        """The reason in `locale`."""
        return load("tools").text(locale, f"shell.why.{self.key}", **self.values)


@dataclass(frozen=True, slots=True)
class SandboxReport:
    """Which sandbox works here, proven by running a command in it (TLS-286).

    Attributes:
        form: The form in use; None when sandboxed commands are refused.
        isolation: What keeps this host's commands from the machine (PIP-161).
        keeps_network: Whether the form can leave the network and close the crew's own ports (TLS-321).
        shortcomings: For each form tried and not in use, why.
        network_shortcoming: Why the network cannot be kept.
    """

    form: SandboxForm | None
    isolation: Isolation
    keeps_network: bool = False
    shortcomings: Mapping[SandboxForm, Shortcoming] = field(default_factory=dict)
    network_shortcoming: Shortcoming | None = None

    def sentence(self, locale: Locale) -> str:
        """For the owner: what is in force, what it does not hold, and how to get a better one."""
        texts = load("tools")
        parts = [texts.text(locale, f"shell.report.{self.form or 'none'}")]
        parts += [
            texts.text(locale, "shell.report.not_used", form=form, reason=shortcoming.text(locale))
            for form, shortcoming in self.shortcomings.items()
        ]
        if self.form is not None and self.network_shortcoming is not None:
            reason = self.network_shortcoming.text(locale)
            parts.append(texts.text(locale, "shell.report.no_network_kept", reason=reason))
        if self.form != "bubblewrap":
            better = "better_in_container" if self.isolation == "container" else "better_native"
            parts.append(texts.text(locale, f"shell.report.{better}"))
        return " ".join(parts)

    @property
    def reason(self) -> str:
        """`sentence` in English, for logs."""
        return self.sentence("en")


def host_isolation(form: SandboxForm | None) -> Isolation:
    """The level this host can show: a container by the kernel's namespace, else its sandbox."""
    try:
        separate = os.stat("/proc/self/ns/pid").st_ino != _FIRST_PID_NAMESPACE
    except OSError:
        separate = False
    if separate and any(Path(mark).exists() for mark in _CONTAINER_MARKS):
        return "container"
    return "os" if form is not None else "none"
