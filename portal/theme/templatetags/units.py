"""Figures as people read them: durations, GPU-hours, ratios, instants with their zone.

Every filter shows what is unknown (None, NaN, NA, NaT) as a dash, never as 0.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd
from django import template
from django.conf import settings
from django.utils import dateformat
from django.utils.translation import gettext, pgettext

register = template.Library()

UNKNOWN = "–"
MINUTE, HOUR, DAY = 60, 3600, 86400


def is_unknown(value: object) -> bool:
    """Whether there is no figure."""
    return bool(pd.isna(value)) or value == ""  # type: ignore[call-overload]


@register.filter
def known(value: object) -> bool:
    """Whether there is a figure at all."""
    return not is_unknown(value)


@register.filter
def duration(seconds: Any) -> str:
    """Seconds as people say them: 45 s, 4 min, 3 h 40 min, 5 d 2 h."""
    if is_unknown(seconds):
        return UNKNOWN
    value = float(seconds)
    sign = "−" if value < 0 else ""
    value = abs(value)
    if round(value) < MINUTE:
        digits = 1 if 0 < value < 10 and value != int(value) else 0
        return sign + gettext("%(seconds)s s") % {"seconds": f"{value:.{digits}f}"}
    minutes = round(value / MINUTE)
    if minutes < HOUR // MINUTE:
        return sign + gettext("%(minutes)d min") % {"minutes": minutes}
    if value < 2 * DAY:
        hours, minutes = divmod(minutes, 60)
        text = gettext("%(hours)d h %(minutes)02d min") if minutes else gettext("%(hours)d h")
        return sign + text % {"hours": hours, "minutes": minutes}
    days, hours = divmod(round(value / HOUR), 24)
    text = gettext("%(days)d d %(hours)d h") if hours else gettext("%(days)d d")
    return sign + text % {"days": days, "hours": hours}


@register.filter
def number(value: Any, digits: int = 0) -> str:
    """A plain figure with its thousands set apart."""
    return UNKNOWN if is_unknown(value) else f"{float(value):,.{digits}f}".replace("-", "−")


@register.filter
def gpu_hours(gpu_seconds: Any) -> str:
    """GPU-seconds as GPU-hours: 212 GPU·h; one decimal below ten."""
    if is_unknown(gpu_seconds):
        return UNKNOWN
    hours = float(gpu_seconds) / HOUR
    small = 0 < abs(hours) < 10
    return gettext("%(hours)s GPU·h") % {"hours": number(hours, 1 if small else 0)}


@register.filter
def ratio(value: Any, digits: int = 0) -> str:
    """A share between 0 and 1 as a percentage: 78 %."""
    return UNKNOWN if is_unknown(value) else f"{100 * float(value):.{digits}f} %".replace("-", "−")


@register.filter
def signed(value: Any) -> str:
    """A change with its sign: +16, −3, 0."""
    if is_unknown(value):
        return UNKNOWN
    figure = float(value)
    return f"{'+' if figure > 0 else '−' if figure < 0 else ''}{abs(figure):,.0f}"


@register.filter
def change(seconds: Any) -> str:
    """A change of a duration with its direction: ▲ 55 min, ▼ 5 min, or that it did not change."""
    if is_unknown(seconds):
        return UNKNOWN
    value = float(seconds)
    if abs(value) < MINUTE:
        return gettext("unchanged")
    return f"{'▲' if value > 0 else '▼'} {duration(abs(value))}"


@register.filter
def points(difference: Any) -> str:
    """A change of a share, in percentage points with its direction: ▲ 3 pt."""
    if is_unknown(difference):
        return UNKNOWN
    value = 100 * float(difference)
    if abs(value) < 0.5:
        return gettext("unchanged")
    return gettext("%(arrow)s %(points)s pt") % {
        "arrow": "▲" if value > 0 else "▼",
        "points": f"{abs(value):.0f}",
    }


@register.filter
def at_least(text: str, flag: object) -> str:
    """Marks a figure that can still grow, because somebody still waits: ≥ 3 h 40 min."""
    return f"≥ {text}" if flag and text != UNKNOWN else text


@register.filter
def ago(when: datetime | None, now: datetime | None = None) -> str:
    """How long ago an instant was: 2 min ago."""
    if is_unknown(when) or when is None:
        return gettext("never")
    seconds = ((now or datetime.now(UTC)) - when).total_seconds()
    if seconds < 0:
        return gettext("in %(duration)s") % {"duration": duration(-seconds)}
    if seconds < MINUTE:
        return gettext("just now")
    return gettext("%(duration)s ago") % {"duration": duration(seconds)}


def zone_of(place: object) -> ZoneInfo:
    """The zone of a region, of a zone's name, or the zone itself."""
    if isinstance(place, ZoneInfo):
        return place
    name = str(getattr(place, "timezone", place or "UTC"))
    return ZoneInfo(name)


@register.filter
def local(when: datetime | None, zone: object = "UTC") -> str:
    """An instant in a region's own time, the zone named: 30 Nov 12:00 JST."""
    if is_unknown(when) or when is None:
        return UNKNOWN
    form = pgettext("day, month, time, zone", "j M H:i T")
    return dateformat.format(when.astimezone(zone_of(zone)), form)


@register.filter
def zone_name(when: datetime, zone: object = "UTC") -> str:
    """What a region calls its time at an instant: JST."""
    place = zone_of(zone)
    return when.astimezone(place).tzname() or str(place)


@register.filter
def local_day(when: datetime | None, zone: object = "UTC") -> str:
    """The day an instant falls on in a region: 30 Nov 2026."""
    if is_unknown(when) or when is None:
        return UNKNOWN
    form = pgettext("day, month, year", "j M Y")
    return dateformat.format(when.astimezone(zone_of(zone)), form)


@register.inclusion_tag("_quota_bar.html")
def quota_bar(used: Any, nominal: Any, limit: Any, borrowed: Any = None) -> dict[str, object]:
    """A quota as a bar: own solid, borrowed hatched, a tick at nominal, full width the limit.

    For several quotas in one bar, give what is borrowed: it is not what exceeds their sum.
    """
    held = None if is_unknown(used) else float(used)
    mark = None if is_unknown(nominal) else float(nominal)
    full = max(held or 0, mark or 0, 0 if is_unknown(limit) else float(limit)) or 1
    over = max(0.0, (held or 0) - mark) if mark is not None else 0.0
    lent = over if is_unknown(borrowed) else float(borrowed)
    own = (held or 0) - lent
    return {
        "known": held is not None,
        "own": number(own),
        "borrowed": number(lent),
        "nominal": number(mark),
        "limit": number(full),
        "own_percent": f"{100 * own / full:.2f}%",
        "borrowed_percent": f"{100 * lent / full:.2f}%",
        "tick_percent": None if mark is None else f"{min(99.4, 100 * mark / full):.2f}%",
    }


@register.inclusion_tag("_interval.html")
def interval(low: Any, point: Any, high: Any, scale: Any, verdict: str = "") -> dict[str, object]:
    """An estimate with its spread around zero; `scale` is the value at either end of the axis."""
    if any(is_unknown(value) for value in (low, point, high)):
        return {"known": False}
    reach = abs(float(scale)) or 1

    def place(value: Any) -> float:
        return 50 + 50 * max(-1.0, min(1.0, float(value) / reach))

    return {
        "known": True,
        "verdict": verdict,
        "from": f"{place(low):.2f}%",
        "width": f"{max(0.5, place(high) - place(low)):.2f}%",
        "at": f"{place(point):.2f}%",
    }


@register.simple_tag
def demo_people() -> list[dict[str, str]]:
    """The demo's sign-ins, for the sign-in page; nobody outside the demo."""
    if not settings.DEMO:
        return []
    roles = {
        "aiko": gettext("project lead: speech, tenant Kaguya"),
        "ben": gettext("ops: reviews regions, decides requests"),
        "emi": gettext("tenant admin: Kaguya"),
        "dana": gettext("auditor: reads everything, changes nothing"),
    }
    return [
        {"email": f"{name}@example.org", "role": role, "password": settings.DEMO_PASSWORD}
        for name, role in roles.items()
    ]
