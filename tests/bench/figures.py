"""What a measure found, and how it is printed."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of the table."""

    name: str
    value: float
    unit: str
    # What it is to stay within; None where nothing is promised.
    target: float | None = None
    # The figure is to be at least the target, not at most.
    at_least: bool = False
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target is kept; None without one."""
        if self.target is None:
            return None
        return self.value >= self.target if self.at_least else self.value <= self.target


def percentile(values: Iterable[float], share: float) -> float:
    """The value that `share` (0 to 1) of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(share * len(ordered)) - 1))]


def table(figures: Sequence[Figure]) -> str:
    """The figures as text for a terminal."""
    rows = [
        (figure.name, f"{_number(figure.value)} {figure.unit}", _target(figure), figure.note)
        for figure in figures
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        f"{name:<{widths[0]}}  {value:>{widths[1]}}  {target:<{widths[2]}}  {note}".rstrip()
        for name, value, target, note in rows
    )


def as_json(figures: Sequence[Figure]) -> list[dict[str, Any]]:
    """The figures for programs."""
    return [{**asdict(figure), "met": figure.met} for figure in figures]


def surroundings() -> dict[str, Any]:
    """What the figures depend on besides the code."""
    one, five, _ = os.getloadavg()
    return {
        "cpus": os.cpu_count(),
        "load_1m": round(one, 2),
        "load_5m": round(five, 2),
        "python": platform.python_version(),
        "kernel": platform.release(),
    }


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}" if abs(value) < 1 else f"{value:.1f}"


def _target(figure: Figure) -> str:
    if figure.target is None:
        return ""
    sign = "≥" if figure.at_least else "≤"
    return f"{'ok' if figure.met else 'MISSED'} ({sign} {_number(figure.target)})"
