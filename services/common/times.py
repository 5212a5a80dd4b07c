"""Moments as the API writes them: UTC in ISO 8601 with a final Z (GTW-037)."""

from __future__ import annotations

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo


def utc_now() -> datetime:
    """The present moment in UTC."""
    return datetime.now(UTC)


def iso(moment: datetime) -> str:
    """`moment`, which has a zone, as text such as ``2026-03-15T14:30:00.125Z``."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def day_in(zone: str, moment: datetime | None = None) -> date:
    """The calendar day of `moment`, by default now, in a time zone (TRN-003)."""
    return (moment or utc_now()).astimezone(ZoneInfo(zone)).date()
