"""How fresh and how complete the collected data of a region is."""

from __future__ import annotations

from datetime import datetime, timedelta

import pandas as pd
from django.db.models import Count, Max, Sum

from portal.telemetry.models import (
    CollectionRun,
    HourCoverage,
    RunState,
    SignalFetch,
    Watermark,
)
from portal.telemetry.versions import BATCH

LIVE_WITHIN = timedelta(minutes=20)  # a collection may be missed once
LATE_WITHIN = timedelta(hours=1)
SAMPLES_AN_HOUR = 12
FRESHNESS = ["signal", "last_sample_at", "age_seconds", "state", "error"]


def freshness(*, region: str, now: datetime) -> pd.DataFrame:
    """Per signal of a region: when its newest sample was taken, how old that is, what went wrong.

    Columns signal, last_sample_at (UTC, NaT when never), age_seconds, state (live up to 20
    minutes, late up to an hour, stale, never), error (what the newest collection said, or "").
    """
    newest: dict[str, datetime | None] = dict(
        Watermark.objects.filter(region__name=region)
        .exclude(version__startswith=BATCH)  # what came by hand says nothing of collecting
        .values_list("signal")
        .annotate(Max("last_sample_at"))
    )
    # The newest runs are enough: each run asks for every signal.
    runs = (
        CollectionRun.objects.filter(region__name=region).order_by("-started_at").values("pk")[:3]
    )
    errors: dict[str, str] = {}
    for signal, state, error in (
        SignalFetch.objects.filter(run__in=list(runs.values_list("pk", flat=True)))
        .order_by("pk")
        .values_list("signal", "state", "error")
    ):
        newest.setdefault(signal, None)
        errors[signal] = error if state == RunState.FAILED else ""
    rows = []
    for signal, at in sorted(newest.items()):
        age = None if at is None else max((now - at).total_seconds(), 0.0)
        rows.append((signal, at, age, state_of_age(age), errors.get(signal, "")))
    frame = pd.DataFrame(rows, columns=FRESHNESS)
    frame["last_sample_at"] = pd.to_datetime(frame["last_sample_at"], utc=True)
    frame["age_seconds"] = frame["age_seconds"].astype("float64")
    return frame


def coverage(*, region: str, start: datetime, end: datetime) -> float | None:
    """The share (0-1) of the five-minute steps of a window that were observed in a region.

    Over the gauges that came at all; an hour that was not collected counts as not observed. None
    when nothing was ever collected there. Clip `end` at now: the future is not a gap.
    """
    whole_hours = max((end - start) // timedelta(hours=1), 1)
    observed = HourCoverage.objects.filter(
        region__name=region, hour__gte=start, hour__lt=end, gauge=True, observed__gt=0
    ).aggregate(steps=Sum("observed"), signals=Count("signal", distinct=True))
    if not observed["signals"]:
        known = Watermark.objects.filter(region__name=region, last_sample_at__isnull=False)
        return 0.0 if known.exists() else None
    steps: int = whole_hours * SAMPLES_AN_HOUR * observed["signals"]
    return float(min(observed["steps"] / steps, 1.0))


def state_of_age(age: float | None) -> str:
    """How fresh a sample of so many seconds is: live, late, stale, or never when there is none."""
    if age is None:
        return "never"
    if age <= LIVE_WITHIN.total_seconds():
        return "live"
    return "late" if age <= LATE_WITHIN.total_seconds() else "stale"
