"""Reads of what was observed, as frames: hours of a signal, its newest values, job records.

Unknown is never zero: an hour without samples has no row.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

import pandas as pd
from django.db.models import Max, Q

from portal.fleet.models import Pool
from portal.telemetry.histograms import added, is_more_than, quantile, share_within
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
    labels = list(dict.fromkeys(["region", *by]))
    _check(by)
    fields = ["pk", "hour", "version", *MEASURED, "last_value", *(LABELS[x] for x in labels)]
    rows = HourRollup.objects.filter(series__signal=signal, hour__gte=start, hour__lt=end)
    if regions is not None:
        rows = rows.filter(series__region__name__in=list(regions))
    names = ["pk", "hour", "version", *MEASURED, "last_value", *labels]
    frame = pd.DataFrame.from_records(list(rows.values_list(*fields)), columns=names)
    if frame.empty:
        return pd.DataFrame(columns=["hour", *by, *MEASURED])
    frame = _newest_version(frame)
    for column in ("sum_value", "min_value", "max_value"):
        frame[column] = frame[column].astype("float64")
    keys = ["hour", *by]
    gauge = frame["last_value"].notna()
    histogram = frame["buckets"].notna()
    grouped = frame.groupby(keys, sort=True, dropna=False)
    # Series seen for different parts of the hour are added as means, brought to one count.
    most = grouped["count"].transform("max")
    means = frame["sum_value"] * (most / frame["count"].where(frame["count"] > 0))
    frame["sum_value"] = means.where(gauge, frame["sum_value"])
    frame["count"] = frame["count"].where(histogram, 0.0)
    grouped = frame.groupby(keys, sort=True, dropna=False)
    total = grouped.agg(
        events=("count", "sum"), observed=("observed", "sum"), expected=("expected", "sum")
    )
    for column in ("sum_value", "min_value", "max_value"):
        total[column] = grouped[column].sum(min_count=1)
    total["buckets"] = grouped["buckets"].agg(_buckets) if histogram.any() else None
    samples = most.groupby([frame[key] for key in keys], sort=True, dropna=False).max()
    total["count"] = total["events"].where(total["buckets"].notna(), samples)
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
        list(found), columns=["pk", "hour", "version", "series", "value", "at", *labels]
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
) -> pd.DataFrame:
    """The job records that touch [start, end): submitted before its end, not over before its start.

    One row a job, columns as in JobRecord. With `regions`: jobs that ran in one of them, and jobs
    that never ran but may run there.
    """
    rows = JobRecord.objects.filter(submit_at__lt=end).filter(
        Q(end_at__isnull=True) | Q(end_at__gt=start)
    )
    if projects is not None:
        rows = rows.filter(project__in=list(projects))
    frame = pd.DataFrame.from_records(
        list(rows.order_by("submit_at", "pk").values_list(*JOB_COLUMNS)), columns=JOB_COLUMNS
    )
    frame = _instants(frame, ["submit_at", "first_start_at", "end_at"])
    for column in ("data_gb", "checkpoint_gb", "staged_gb"):
        frame[column] = frame[column].astype("float64")
    for column in ("total_wait_seconds", "limit_seconds"):
        frame[column] = frame[column].astype("Int64")
    if regions is not None and not frame.empty:
        frame = frame[_in_regions(frame, set(regions))].reset_index(drop=True)
    return frame


def attempts(
    *,
    start: datetime,
    end: datetime,
    projects: Collection[str] | None = None,
    pools: Collection[str] | None = None,
) -> pd.DataFrame:
    """The attempts that touch [start, end), with their job's id, project, lane, gpus, submit_at."""
    rows = AttemptRecord.objects.filter(start_at__lt=end).filter(
        Q(end_at__isnull=True) | Q(end_at__gt=start)
    )
    if projects is not None:
        rows = rows.filter(job__project__in=list(projects))
    if pools is not None:
        rows = rows.filter(pool__in=list(pools))
    columns = [*JOB_OF_ATTEMPT, *ATTEMPT_COLUMNS]
    fields = [*(f"job__{name}" for name in JOB_OF_ATTEMPT), *ATTEMPT_COLUMNS]
    frame = pd.DataFrame.from_records(
        list(rows.order_by("start_at", "pk").values_list(*fields)), columns=columns
    )
    return _instants(frame, ["submit_at", "start_at", "end_at"])


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
    last = frame.groupby(["region", "hour"])["pk"].transform("max")
    winners = frame.loc[frame["pk"] == last, ["region", "hour", "version"]]
    return frame.merge(winners, on=["region", "hour", "version"])


def _buckets(values: pd.Series[Any]) -> dict[str, float] | None:
    return added(value for value in values if isinstance(value, dict))


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
