"""Reads of rollups as frames: steps, hours and days of a signal, its newest values, its versions.

Unknown is never zero: an hour without samples has no row.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd
from django.conf import settings
from django.db.models import Count, F, Max, Min, Q, QuerySet, Sum
from django.db.models.functions import NullIf

from portal.telemetry import versions
from portal.telemetry.histograms import TOP, bound
from portal.telemetry.models import DayRollup, HourRollup, Rollup, Series, StepRollup

LABELS = {
    "region": "series__region__name",
    "pool": "series__pool",
    "project": "series__project",
    "lane": "series__lane",
    "storage": "series__storage",
    "detail": "series__detail",
}
MEASURED = [
    "sum_value",
    "count",
    "min_value",
    "max_value",
    "observed",
    "expected",
    "buckets",
]
# A total's extremes over a day are those of its hours, and days are read to spare the hours.
OF_A_DAY = ["sum_value", "count", "observed", "expected", "buckets"]
# What the database adds up over series; a gauge (it has a newest value) counts with its own mean.
_SUMS = {
    "newest": Max("pk"),
    "most": Max("count"),
    "plain": Sum("sum_value", filter=Q(last_value__isnull=True)),
    "means": Sum(F("sum_value") / NullIf(F("count"), 0.0), filter=Q(last_value__isnull=False)),
    "low": Sum("min_value"),
    "high": Sum("max_value"),
    "seen": Sum("observed"),
    "due": Sum("expected"),
    "events": Sum("count", filter=Q(buckets__isnull=False), default=0.0),
    "histograms": Count("buckets"),
}
_UNEVEN = Q(observed__lt=F("expected"))
STEP = timedelta(minutes=5)
REMEMBERED = timedelta(hours=24)


def hours(
    *,
    signal: str,
    start: datetime,
    end: datetime,
    regions: Collection[str] | None = None,
    by: Sequence[str] = ("pool",),
) -> pd.DataFrame:
    """The hours of a signal in [start, end), added up over the labels that are not in `by`.

    Columns hour (UTC), those of `by` (region, pool, project, lane, storage, detail), sum_value,
    count, min_value, max_value, observed, expected, buckets.

    - Gauges: `sum_value / count` is the hour's mean of the total. A series that was seen for a part
      of the hour counts with its own mean; min and max bound the total.
    - Counters: sum_value is the increase in the hour.
    - Histograms: sum_value, count and buckets are the increases in the hour.

    Of several versions of its query that were collected in an hour, the newest counts; an import
    counts only where nothing was collected.
    """
    _check(by)
    rows = _rows(HourRollup, "hour", signal=signal, start=start, end=end, regions=regions)
    return _added_up(rows, "hour", signal=signal, by=by)


def steps(
    *,
    signal: str,
    start: datetime,
    end: datetime,
    regions: Collection[str] | None = None,
    by: Sequence[str] = ("pool",),
) -> pd.DataFrame:
    """The five-minute steps of a signal in [start, end): as `hours`, with `at` for the hour.

    They are kept for some weeks (KEEP_STEPS_DAYS), and of what was fetched late, or brought
    by an import, there may be none.
    """
    _check(by)
    rows = _rows(StepRollup, "at", signal=signal, start=start, end=end, regions=regions)
    return _added_up(rows, "at", signal=signal, by=by)


def days(
    *,
    signal: str,
    start: datetime,
    end: datetime,
    regions: Collection[str] | None = None,
    by: Sequence[str] = ("pool",),
) -> pd.DataFrame:
    """The days of a signal in [start, end), which must be midnights of the site's time zone.

    Columns day (the instant of its midnight, UTC), those of `by`, sum_value, count, observed,
    expected, buckets: the sums of what `hours` gives. A day in which every series was seen in every
    step is read from its own rows, which is some twenty times less to read; any other day is added
    up from its hours, as long as they are kept.
    """
    _check(by)
    zone = ZoneInfo(settings.REPORT_TIMEZONE)
    for instant in (start, end):
        if instant != _begins(instant.astimezone(zone).date(), zone):
            raise ValueError(f"{instant.isoformat()} is no midnight in {zone.key}")
    rows = _rows(DayRollup, "day", signal=signal, start=start, end=end, regions=regions)
    whole = _whole_days(rows, signal=signal, regions=regions)
    parts = [_added_up(rows.filter(day__in=whole), "day", signal=signal, by=by)]
    for first, last in _between(whole, start=start, end=end, zone=zone):
        found = hours(signal=signal, start=first, end=last, regions=regions, by=by)
        parts.append(_days_from_hours(found, by=by, zone=zone))
    columns = ["day", *by, *OF_A_DAY]
    filled = [part[columns] for part in parts if not part.empty] or [pd.DataFrame(columns=columns)]
    return pd.concat(filled).sort_values(["day", *by]).reset_index(drop=True)


def latest(*, signal: str, region: str, by: Sequence[str], now: datetime) -> pd.DataFrame:
    """The newest known value of a gauge in a region, however old: columns `by`, value, at.

    Each group shows its own newest sample, added up over the labels that are not in `by`. What has
    been silent for a day while others of the signal went on is gone, not remembered.
    """
    _check(by)
    empty = pd.DataFrame(columns=[*by, "value", "at"])
    rows = HourRollup.objects.filter(
        series__signal=signal, series__region__name=region, last_at__lte=now
    )
    newest = rows.aggregate(Max("hour"))["hour__max"]
    if newest is None:
        return empty
    labels = list(dict.fromkeys(["region", *by]))
    found = rows.filter(hour__gte=newest - REMEMBERED, last_value__isnull=False).values_list(
        "pk", "hour", "version", "series", "last_value", "last_at", *(LABELS[x] for x in labels)
    )
    frame = pd.DataFrame.from_records(
        list(found), columns=["newest", "hour", "version", "series", "value", "at", *labels]
    )
    if frame.empty:
        return empty
    frame = versions.shown(frame, "hour", signal=signal)
    frame = frame.sort_values("at").drop_duplicates("series", keep="last")
    if not by:
        frame = frame[frame["at"] > frame["at"].max() - STEP]
        return pd.DataFrame({"value": [frame["value"].sum()], "at": [frame["at"].max()]})
    at = frame.groupby(list(by), dropna=False)["at"].transform("max")
    frame = frame[frame["at"] > at - STEP]
    return (
        frame.groupby(list(by), sort=True, dropna=False)
        .agg(value=("value", "sum"), at=("at", "max"))
        .reset_index()
    )


def _check(by: Sequence[str]) -> None:
    unknown = [name for name in by if name not in LABELS]
    if unknown:
        raise ValueError(f"by has {unknown}; expected some of {list(LABELS)}")


def _rows(
    level: type[Rollup],
    instant: str,
    *,
    signal: str,
    start: datetime,
    end: datetime,
    regions: Collection[str] | None,
) -> QuerySet[Any]:
    rows = level._default_manager.filter(  # noqa: SLF001
        **{"series__signal": signal, f"{instant}__gte": start, f"{instant}__lt": end}
    )
    return rows if regions is None else rows.filter(series__region__name__in=list(regions))


def _added_up(rows: QuerySet[Any], instant: str, *, signal: str, by: Sequence[str]) -> pd.DataFrame:
    labels = {name: F(LABELS[name]) for name in dict.fromkeys(["region", *by])}
    names = [instant, "version", *labels]
    found = rows.values(instant, "version", **labels).annotate(**_SUMS).values_list(*names, *_SUMS)
    frame = pd.DataFrame.from_records(list(found), columns=[*names, *_SUMS])
    if frame.empty:
        return pd.DataFrame(columns=[instant, *by, *MEASURED])
    frame = versions.shown(frame, instant, signal=signal)
    numbers = ["plain", "means", "low", "high"]
    frame[numbers] = frame[numbers].astype("float64")
    keys = [instant, *by]
    grouped = frame.groupby(keys, sort=True, dropna=False)
    most = grouped["most"].max()
    total = grouped[["events", "seen", "due"]].sum()
    total = total.rename(columns={"seen": "observed", "due": "expected"})
    # Series seen for different parts of the hour are added as means, brought to one count.
    parts = pd.concat(
        [grouped["plain"].sum(min_count=1), grouped["means"].sum(min_count=1) * most], axis=1
    )
    total["sum_value"] = parts.sum(axis=1, min_count=1)
    total["min_value"] = grouped["low"].sum(min_count=1)
    total["max_value"] = grouped["high"].sum(min_count=1)
    total["count"] = most
    total["buckets"] = None
    if frame["histograms"].any():
        counted = rows.filter(buckets__isnull=False, count__gt=0).values_list(
            instant, "version", *labels.values(), "buckets"
        )
        kept = frame[names].drop_duplicates()
        buckets = pd.DataFrame.from_records(list(counted), columns=[*names, "buckets"])
        is_histogram = grouped["histograms"].sum() > 0
        summed = _added_by(buckets.merge(kept, on=names), keys)
        total["buckets"] = summed.reindex(total.index) if len(summed) else None
        silent = is_histogram & total["buckets"].isna()
        total["buckets"] = total["buckets"].where(~silent, {"+Inf": 0.0})
        total["count"] = total["events"].where(is_histogram, most)
    return total.reset_index()[[instant, *by, *MEASURED]]


def _whole_days(
    rows: QuerySet[Any], *, signal: str, regions: Collection[str] | None
) -> list[datetime]:
    """The days whose rows say all: each region has some, of one version, and none has a gap.

    So do those whose hours are no longer kept, whatever is in them.
    """
    with_signal = Series.objects.filter(signal=signal)
    if regions is not None:
        with_signal = with_signal.filter(region__name__in=list(regions))
    wanted = with_signal.values("region").distinct().count()
    oldest = HourRollup.objects.aggregate(Min("hour"))["hour__min"]
    found: dict[datetime, list[bool]] = {}
    for day, versions_count, uneven in (
        rows.values("day", "series__region")
        .annotate(versions=Count("version", distinct=True), uneven=Count("pk", filter=_UNEVEN))
        .values_list("day", "versions", "uneven")
    ):
        found.setdefault(day, []).append(versions_count == 1 and not uneven)
    return sorted(
        day
        for day, even in found.items()
        if (len(even) == wanted and all(even)) or oldest is None or day < oldest
    )


def _between(
    whole: list[datetime], *, start: datetime, end: datetime, zone: ZoneInfo
) -> list[tuple[datetime, datetime]]:
    """The stretches of [start, end) that no whole day covers."""
    found, at = [], start
    for day in whole:
        if at < day:
            found.append((at, day))
        at = _begins(day.astimezone(zone).date() + timedelta(days=1), zone)
    return [*found, (at, end)] if at < end else found


def _begins(day: date, zone: ZoneInfo) -> datetime:
    """When a date begins: where clocks go forward at midnight, that is one o'clock."""
    return datetime.combine(day, time(), tzinfo=zone).astimezone(UTC)


def _days_from_hours(frame: pd.DataFrame, *, by: Sequence[str], zone: ZoneInfo) -> pd.DataFrame:
    if frame.empty:
        return pd.DataFrame(columns=["day", *by, *OF_A_DAY])
    dates = frame["hour"].dt.tz_convert(zone).dt.date
    begins = {day: pd.Timestamp(_begins(day, zone)) for day in dates.unique()}
    frame = frame.assign(day=dates.map(begins))
    keys = ["day", *by]
    grouped = frame.groupby(keys, sort=True, dropna=False)
    total = grouped[["count", "observed", "expected"]].sum()
    total["sum_value"] = grouped["sum_value"].sum(min_count=1)
    counted = frame[frame["buckets"].notna()]
    summed = _added_by(counted, keys)
    total["buckets"] = summed.reindex(total.index) if len(summed) else None
    return total.reset_index()


def _added_by(frame: pd.DataFrame, keys: list[str]) -> pd.Series[Any]:
    """The buckets of each group as one, as `histograms.added` does it, for many groups at once."""
    if frame.empty:
        return pd.Series(dtype=object)
    wide = pd.DataFrame.from_records(frame["buckets"].tolist())
    bounds: list[str] = [bound(str(name)) for name in wide.columns]
    wide = wide.T.groupby(bounds, sort=False).sum(min_count=1).T
    wide = wide[sorted(set(bounds), key=lambda text: float(str(text)))]
    telling = wide[TOP].to_numpy() > 0
    grouped = wide[telling].groupby(
        [frame[key].reset_index(drop=True)[telling] for key in keys], sort=True, dropna=False
    )
    # A bound that one of the parts does not have is none of the whole.
    sums = grouped.sum(min_count=1).where(grouped.count().eq(grouped.size(), axis=0))
    return pd.Series(
        [
            {name: value for name, value in zip(sums.columns, row, strict=True) if value == value}
            for row in sums.to_numpy().tolist()
        ],
        index=sums.index,
        dtype=object,
    )
