"""Reads of what was observed, as frames: hours of a signal, its newest values, job records.

Unknown is never zero: an hour without samples has no row.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

import pandas as pd
from django.db.models import Count, F, Max, Q, Sum
from django.db.models.functions import NullIf

from portal.fleet.models import Pool
from portal.telemetry.histograms import bound, is_more_than, quantile, share_within
from portal.telemetry.models import AttemptRecord, HourRollup, ImportBatch, JobRecord
from portal.telemetry.quality import coverage, freshness

__all__ = [
    "attempts",
    "coverage",
    "freshness",
    "hours",
    "is_more_than",
    "jobs",
    "known_until",
    "latest",
    "quantile",
    "share_within",
]

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
STEP = timedelta(minutes=5)
REMEMBERED = timedelta(hours=24)
JOB_COLUMNS = [
    "source", "job_id", "project", "lane", "pool", "gpus", "submit_at", "first_start_at", "end_at",
    "state", "reason", "total_wait_seconds", "work_seconds", "limit_seconds", "accelerator",
    "pools", "regions", "data_region", "data_gb", "checkpoint_interval_seconds", "checkpoint_gb",
    "restart_seconds", "attempts_count", "preemptions", "staged_gb",
]  # fmt: skip
ATTEMPT_COLUMNS = [
    "number", "pool", "start_at", "end_at", "ended", "ground", "evicted_by_job",
    "evicted_by_project", "evicted_by_lane", "useful_gpu_seconds", "lost_gpu_seconds",
    "checkpoint_gpu_seconds", "restart_gpu_seconds", "staging_gpu_seconds",
]  # fmt: skip
JOB_OF_ATTEMPT = ["source", "job_id", "project", "lane", "gpus", "submit_at"]


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

    Where a signal was collected by several versions of its query, the newest one counts.
    """
    _check(by)
    labels = {name: F(LABELS[name]) for name in dict.fromkeys(["region", *by])}
    rows = HourRollup.objects.filter(series__signal=signal, hour__gte=start, hour__lt=end)
    if regions is not None:
        rows = rows.filter(series__region__name__in=list(regions))
    names = ["hour", "version", *labels]
    found = rows.values("hour", "version", **labels).annotate(**_SUMS).values_list(*names, *_SUMS)
    frame = pd.DataFrame.from_records(list(found), columns=[*names, *_SUMS])
    if frame.empty:
        return pd.DataFrame(columns=["hour", *by, *MEASURED])
    frame = _newest_version(frame)
    numbers = ["plain", "means", "low", "high"]
    frame[numbers] = frame[numbers].astype("float64")
    keys = ["hour", *by]
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
            "hour", "version", *labels.values(), "buckets"
        )
        kept = frame[names].drop_duplicates()
        buckets = pd.DataFrame.from_records(list(counted), columns=[*names, "buckets"])
        is_histogram = grouped["histograms"].sum() > 0
        summed = _added_by(buckets.merge(kept, on=names), keys)
        total["buckets"] = summed.reindex(total.index) if len(summed) else None
        silent = is_histogram & total["buckets"].isna()
        total["buckets"] = total["buckets"].where(~silent, {"+Inf": 0.0})
        total["count"] = total["events"].where(is_histogram, most)
    return total.reset_index()[["hour", *by, *MEASURED]]


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
    frame = _newest_version(frame).sort_values("at").drop_duplicates("series", keep="last")
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


def jobs(
    *,
    start: datetime,
    end: datetime,
    projects: Collection[str] | None = None,
    regions: Collection[str] | None = None,
    columns: Sequence[str] = JOB_COLUMNS,
) -> pd.DataFrame:
    """The job records that touch [start, end): submitted before its end, not over before its start.

    One row a job, columns as in JobRecord (all, or those named). With `regions`: jobs that ran in
    one of them, and jobs that never ran but may run there.
    """
    rows = JobRecord.objects.filter(submit_at__lt=end).filter(
        Q(end_at__isnull=True) | Q(end_at__gt=start)
    )
    if projects is not None:
        rows = rows.filter(project__in=list(projects))
    places = ["pool", "pools", "regions"] if regions is not None else []
    read = list(dict.fromkeys([*columns, *places]))
    frame = pd.DataFrame.from_records(
        list(rows.order_by("submit_at", "pk").values_list(*read)), columns=read
    )
    frame = _instants(frame, [name for name in read if name.endswith("_at")])
    for column in {"data_gb", "checkpoint_gb", "staged_gb"}.intersection(read):
        frame[column] = frame[column].astype("float64")
    for column in {"total_wait_seconds", "limit_seconds"}.intersection(read):
        frame[column] = frame[column].astype("Int64")
    if regions is not None and not frame.empty:
        frame = frame[_in_regions(frame, set(regions))].reset_index(drop=True)
    return frame[list(columns)]


def attempts(
    *,
    start: datetime,
    end: datetime,
    projects: Collection[str] | None = None,
    pools: Collection[str] | None = None,
    columns: Sequence[str] = (*JOB_OF_ATTEMPT, *ATTEMPT_COLUMNS),
) -> pd.DataFrame:
    """The attempts that touch [start, end), with their job's id, project, lane, gpus, submit_at.

    All columns, or those named.
    """
    rows = AttemptRecord.objects.filter(start_at__lt=end).filter(
        Q(end_at__isnull=True) | Q(end_at__gt=start)
    )
    if projects is not None:
        rows = rows.filter(job__project__in=list(projects))
    if pools is not None:
        rows = rows.filter(pool__in=list(pools))
    fields = [f"job__{name}" if name in JOB_OF_ATTEMPT else name for name in columns]
    frame = pd.DataFrame.from_records(
        list(rows.order_by("start_at", "pk").values_list(*fields)), columns=list(columns)
    )
    return _instants(frame, [name for name in columns if name.endswith("_at")])


def known_until() -> datetime | None:
    """Until when the job records tell the truth; None when there are none."""
    newest: datetime | None = ImportBatch.objects.aggregate(Max("known_until"))["known_until__max"]
    return newest


def _check(by: Sequence[str]) -> None:
    unknown = [name for name in by if name not in LABELS]
    if unknown:
        raise ValueError(f"by has {unknown}; expected some of {list(LABELS)}")


def _newest_version(frame: pd.DataFrame) -> pd.DataFrame:
    """Keeps, for each region and hour, the rows of the version that was stored last.

    For the whole signal, not per series: another query may have named its series differently.
    """
    if frame["version"].nunique() == 1:
        return frame
    last = frame.groupby(["region", "hour"])["newest"].transform("max")
    winners = frame.loc[frame["newest"] == last, ["region", "hour", "version"]]
    return frame.merge(winners, on=["region", "hour", "version"])


def _added_by(frame: pd.DataFrame, keys: list[str]) -> pd.Series[Any]:
    """The buckets of each group as one, as `histograms.added` does it, for many groups at once."""
    if frame.empty:
        return pd.Series(dtype=object)
    wide = pd.DataFrame.from_records(frame["buckets"].tolist())
    bounds: list[str] = [bound(str(name)) for name in wide.columns]
    wide = wide.T.groupby(bounds, sort=False).sum(min_count=1).T
    wide = wide[sorted(set(bounds), key=lambda text: float(str(text)))]
    sums = wide.groupby([frame[key] for key in keys], sort=True, dropna=False).sum(min_count=1)
    return pd.Series(
        [
            {name: value for name, value in zip(sums.columns, row, strict=True) if value == value}
            for row in sums.to_numpy().tolist()
        ],
        index=sums.index,
        dtype=object,
    )


def _instants(frame: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    for column in columns:
        frame[column] = pd.to_datetime(frame[column], utc=True)
    return frame


def _in_regions(frame: pd.DataFrame, wanted: set[str]) -> list[bool]:
    region_of = dict(Pool.objects.values_list("name", "domain__region__name"))

    def touches(pool: str, pools: list[str], regions: list[str]) -> bool:
        if pool:
            return region_of.get(pool) in wanted
        if pools:
            return any(region_of.get(name) in wanted for name in pools)
        return not regions or bool(wanted.intersection(regions))

    return [
        touches(pool, pools, regions)
        for pool, pools, regions in zip(
            frame["pool"], frame["pools"], frame["regions"], strict=True
        )
    ]
