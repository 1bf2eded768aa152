"""Deletes rollups that are kept no longer, level by level, a few thousand rows at a time.

Each batch is a transaction of its own: a collection never waits long for it, and a task that is
ended in between has lost nothing and is gone on with the next day.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import QuerySet

from collectors import rollups, storing
from collectors.ranges import floor
from collectors.rollups import HOUR
from portal import env
from portal.fleet.models import Region
from portal.telemetry.models import DayRollup, HourCoverage, HourRollup, StepRollup

AT_ONCE = 5_000


def prune(*, now: datetime) -> dict[str, int]:
    """Deletes what is older than the settings say; gives how many rows of each level.

    An hour or a day is deleted as a whole. Before hours go, days that were never made of them are.
    """
    steps, hours, days = (
        None if kept is None else now - timedelta(days=kept)
        for kept in map(env.value, (env.KEEP_STEPS_DAYS, env.KEEP_HOURS_DAYS, env.KEEP_DAYS_DAYS))
    )
    gone = {"steps": 0, "hours": 0, "days": 0}
    if steps is not None:
        gone["steps"] = _delete(StepRollup.objects.filter(at__lt=floor(steps, HOUR)), "at")
    if hours is not None:
        midnight = _midnight(hours)
        _make_days(before=midnight, now=now)
        gone["hours"] = _delete(HourRollup.objects.filter(hour__lt=midnight), "hour")
        _delete(HourCoverage.objects.filter(hour__lt=midnight), "hour")
    if days is not None:
        gone["days"] = _delete(DayRollup.objects.filter(day__lt=_midnight(days)), "day")
    return gone


def _delete(old: QuerySet[Any], instant: str) -> int:
    gone = 0
    while some := list(old.order_by(instant).values_list("pk", flat=True)[:AT_ONCE]):
        # Nothing refers to rollups: this is one statement.
        old.model._default_manager.filter(pk__in=some).delete()  # noqa: SLF001
        gone += len(some)
    return gone


def _make_days(*, before: datetime, now: datetime) -> None:
    """Makes the days that have no row yet; one that has may have lost some of its hours already."""
    zone = ZoneInfo(settings.REPORT_TIMEZONE)
    found: defaultdict[tuple[int, str, str], list[datetime]] = defaultdict(list)
    for region, signal, version, hour in (
        HourRollup.objects.filter(hour__lt=before)
        .values_list("series__region", "series__signal", "version", "hour")
        .distinct()
    ):
        found[region, signal, version].append(hour)
    regions = Region.objects.in_bulk()
    for (region, signal, version), hours in found.items():
        there = set(
            DayRollup.objects.filter(
                series__region=region, series__signal=signal, version=version, day__lt=before
            ).values_list("day", flat=True)
        )
        missing = [day for day, _end in rollups.days_of(hours, zone) if day not in there]
        storing.renew_days(
            region=regions[region], signal=signal, version=version, hours=missing, until=now
        )


def _midnight(instant: datetime) -> datetime:
    """When the day of an instant began in the site's time zone."""
    ((day, _end),) = rollups.days_of([instant], ZoneInfo(settings.REPORT_TIMEZONE))
    return day
