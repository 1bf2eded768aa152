"""The stretch of time a page shows, chosen in the URL: 24h, 7d, week, 2026-W48, 4w."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.utils.translation import gettext

from portal.http import Week

DEFAULT = "7d"
COARSE = 3
LENGTHS = {"24h": timedelta(hours=24), "7d": timedelta(days=7), "4w": timedelta(days=28)}


@dataclass(frozen=True, slots=True)
class Window:
    """[start, end) in UTC, on whole hours; `step_hours` is the resolution of its charts."""

    key: str
    start: datetime
    end: datetime
    zone: ZoneInfo
    step_hours: int = 1

    @property
    def before(self) -> tuple[datetime, datetime]:
        """The stretch of the same length right before."""
        return self.start - (self.end - self.start), self.start

    @property
    def label(self) -> str:
        """What the switch calls it."""
        names = {"24h": gettext("24 h"), "7d": gettext("7 days"), "4w": gettext("4 weeks")}
        if self.key in names:
            return names[self.key]
        number = Week.of(self.start, self.zone).number
        return gettext("week %(number)d") % {"number": number}


def window(text: str, *, now: datetime, zone: ZoneInfo) -> Window:
    """The window that a query parameter names; an unknown one is the default.

    Ends with the running hour. A past week (2026-W48) ends where it ends.
    """
    end = now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    if text == "4w":
        # Steps of three hours, whole ones in UTC.
        end += timedelta(hours=-end.hour % COARSE)
        return Window(text, end - LENGTHS[text], end, zone, COARSE)
    if text in LENGTHS:
        return Window(text, end - LENGTHS[text], end, zone)
    try:
        week = Week.of(now, zone) if text == "week" else Week.parse(text)
    except ValueError:
        return window(DEFAULT, now=now, zone=zone)
    start, until = week.window(zone)
    if start >= now:
        return window(DEFAULT, now=now, zone=zone)
    return Window(text, start, min(until, end), zone)


def switch(chosen: Window, *, now: datetime) -> list[dict[str, Any]]:
    """The range switch: one entry per length, the chosen one marked."""
    found = [window(key, now=now, zone=chosen.zone) for key in ("24h", "7d", "week", "4w")]
    if chosen.key not in {item.key for item in found}:
        found.insert(2, chosen)
    return [{"key": item.key, "label": item.label, "on": item.key == chosen.key} for item in found]
