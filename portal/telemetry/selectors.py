"""Reads of what was observed, as frames: steps, hours, days of a signal, job records.

Unknown is never zero: an hour without samples has no row.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

import pandas as pd
from django.db.models import Max, Q

from portal.fleet.models import Pool
from portal.telemetry.histograms import interval, is_more_than, quantile, share_within
from portal.telemetry.measured import days, hours, latest, steps
from portal.telemetry.models import AttemptRecord, ImportBatch, ImportKind, JobRecord
from portal.telemetry.quality import coverage, freshness
from portal.telemetry.versions import changes

__all__ = [
    "attempts",
    "changes",
    "coverage",
    "days",
    "freshness",
    "hours",
    "interval",
    "is_more_than",
    "jobs",
    "known_until",
    "latest",
    "quantile",
    "share_within",
    "steps",
]

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
    batches = ImportBatch.objects.filter(kind=ImportKind.JOBS)
    newest: datetime | None = batches.aggregate(Max("known_until"))["known_until__max"]
    return newest


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
