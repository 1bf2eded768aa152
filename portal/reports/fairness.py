"""The week in figures: who got what they were entitled to, who waited, what was lost.

Pure: DataFrames in, one tidy frame out; it works in a notebook. The page, the file and the charts
all read that frame.
Everything that can be added is added as whole seconds and GPU-seconds first; ratios, quantiles and
roundings are made last, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd

from portal.telemetry import waits

HOUR = 3600
LANES = ("emergency", "primary", "exploratory", "background")
JOB = ["source", "job_id"]
KEYS_OF_WORK = ["project", "lane", "pool"]
KEYS = ["tenant", *KEYS_OF_WORK]
ADDED = [
    "entitled_gpu_seconds", "idle_gpu_seconds", "delivered_gpu_seconds", "useful_gpu_seconds",
    "lost_gpu_seconds", "waited_seconds", "jobs_started", "preemptions_suffered",
    "preemptions_caused", "outage_interruptions", "requeues",
]  # fmt: skip
SCOPES: Mapping[str, list[str]] = {
    "total": [],
    "project": ["project"],
    "tenant": ["tenant"],
    "lane": ["lane"],
    "pool": ["pool"],
}
# The columns of the report, in the order of the file, with the digits they are rounded to.
ROUNDED: Mapping[str, int] = {
    "entitled_gpu_hours": 1,
    "delivered_gpu_hours": 1,
    "delivered_entitled_ratio": 3,
    "share_ratio": 3,
    "jain_index": 3,
    "useful_gpu_hours": 1,
    "idle_entitlement_gpu_hours": 1,
    "jobs_started": 0,
    "first_wait_p50_minutes": 0,
    "first_wait_p90_minutes": 0,
    "first_wait_longest_minutes": 0,
    "still_waiting": 0,
    "waited_job_hours": 1,
    "preemptions_suffered": 0,
    "preemptions_caused": 0,
    "outage_interruptions": 0,
    "requeues": 0,
    "lost_gpu_hours": 1,
}
COMPARED = {
    "delivered_gpu_hours": "delivered_change_gpu_hours",
    "delivered_entitled_ratio": "delivered_entitled_change_ratio",
    "first_wait_p90_minutes": "first_wait_p90_change_minutes",
    "lost_gpu_hours": "lost_change_gpu_hours",
}
COLUMNS = ["scope", "name", "tenant", *ROUNDED, *COMPARED.values()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The part of a week that the job records can speak about: [start, until).

    `known_until` is where the records themselves end; what still ran then is cut there.
    """

    start: datetime
    until: datetime
    known_until: datetime


def week(
    *,
    jobs: pd.DataFrame,
    attempts: pd.DataFrame,
    levels: pd.DataFrame,
    span: Span,
    tenants: Mapping[str, str],
) -> pd.DataFrame:
    """One row per project, tenant, lane and pool and one in all, every figure of the week.

    `jobs` and `attempts` are the records that touch the span (`telemetry.selectors`), of everybody.
    `levels` says how much was in force: project, tenant, pool, start_at, end_at, nominal_gpus, rows
    of one project and pool not overlapping. `tenants` maps projects to tenants; a project that is
    not in it has the tenant "". Columns: scope, name, tenant, then those of ROUNDED; what cannot be
    known is <NA>: a ratio without entitlement, a wait where nobody waited.
    """
    added = facts(jobs=jobs, attempts=attempts, levels=levels, span=span, tenants=tenants)
    queue = _queue(jobs, attempts, span, tenants)
    parts = [_of_scope(scope, keys, added, queue, span) for scope, keys in SCOPES.items()]
    frame = pd.concat(parts, ignore_index=True)
    frame["tenant"] = frame["tenant"].fillna("")
    return _rounded(frame)


def facts(
    *,
    jobs: pd.DataFrame,
    attempts: pd.DataFrame,
    levels: pd.DataFrame,
    span: Span,
    tenants: Mapping[str, str],
) -> pd.DataFrame:
    """All that can be added, by project, tenant, lane and pool: the columns ADDED, whole numbers.

    Because every scope is a sum of these rows, the projects, the lanes and the pools each add up
    to the total; and two spans that meet add up to their union: held, useful, idle, waited time.
    """
    held = _clipped(attempts, span)
    held["delivered_gpu_seconds"] = held["held_seconds"] * held["gpus"].astype("int64")
    held["useful_gpu_seconds"] = _useful(held)

    # What happens at an instant belongs to the span in which that instant lies. Endings count in
    # (start, until], because a record that ends exactly at the start no longer touches the span.
    starts, until = pd.Timestamp(span.start), pd.Timestamp(span.until)
    ended = held[(held["end_at"] > starts) & (held["end_at"] <= until)].copy()
    evicted = ended[ended["ended"] == "evicted"].copy()
    by_outage = evicted["ground"] == "outage"
    evicted["preemptions_suffered"] = (~by_outage).astype("int64")
    evicted["outage_interruptions"] = by_outage.astype("int64")
    evicted["requeues"] = _put_back(evicted, jobs).astype("int64")
    caused = evicted[~by_outage & (evicted["evicted_by_project"] != "")]
    caused = pd.DataFrame(
        {
            "project": caused["evicted_by_project"],
            "lane": caused["evicted_by_lane"],
            "pool": caused["pool"],
            "preemptions_caused": 1,
        }
    )
    asked = _placed(jobs, attempts, span)
    first = asked[asked["first_start_at"] >= starts]
    asked = asked.assign(waited_seconds=_waited(asked, held, span))
    rows = pd.concat(
        [
            held[[*KEYS_OF_WORK, "delivered_gpu_seconds", "useful_gpu_seconds"]],
            ended[[*KEYS_OF_WORK, "lost_gpu_seconds"]],
            evicted[[*KEYS_OF_WORK, "preemptions_suffered", "outage_interruptions", "requeues"]],
            caused,
            first[KEYS_OF_WORK].assign(jobs_started=1),
            asked[[*KEYS_OF_WORK, "waited_seconds"]],
            _entitled(levels, held, span),
        ],
        ignore_index=True,
    )
    rows["tenant"] = [tenants.get(name, "") for name in rows["project"]]
    rows[ADDED] = rows.reindex(columns=ADDED).fillna(0).astype("int64")
    return rows.groupby(KEYS, as_index=False, sort=True)[ADDED].sum()


def jain(ratios: Iterable[float]) -> float | None:
    """Jain's index of fairness: 1 when all ratios are equal, 1/n when one has everything.

    None when there is nobody, or when nobody got anything.
    """
    values = np.asarray(list(ratios), dtype=float)
    squares = float((values**2).sum())
    return float(values.sum()) ** 2 / (len(values) * squares) if squares else None


def compared(frame: pd.DataFrame, before: pd.DataFrame) -> pd.DataFrame:
    """The week with its change against the week before, from the rounded figures of both.

    So a reader who takes two files gets the same change to the last digit. What one of the weeks
    does not know has no change.
    """
    keys = ["scope", "name"]
    old = before.set_index(keys)[list(COMPARED)]
    old = old.reindex(pd.MultiIndex.from_frame(frame[keys])).reset_index(drop=True)
    result = frame.reset_index(drop=True)
    for column, change in COMPARED.items():
        digits = ROUNDED[column]
        moved = (result[column].astype("Float64") - old[column].astype("Float64")).round(digits)
        result[change] = moved if digits else moved.astype("Int64")
    return result[COLUMNS]


# ---- how the pieces are cut ------------------------------------------------------------------


def _seconds(instants: pd.Series[Any]) -> pd.Series[int]:
    """Whole seconds since 1970; a fraction of a second is cut off."""
    whole: pd.Series[int] = instants.dt.tz_convert("UTC").dt.as_unit("s").astype("int64")
    return whole


def _epoch(instant: datetime) -> int:
    return int(instant.timestamp())


def _clipped(attempts: pd.DataFrame, span: Span) -> pd.DataFrame:
    """The attempts with what lies inside the span: from_second, to_second, held_seconds.

    An attempt that has not ended is held until where the records end.
    """
    held = attempts.copy()
    start = _seconds(held["start_at"])
    end = _seconds(held["end_at"].fillna(pd.Timestamp(span.known_until)))
    end = end.where(end > start, start)
    low, high = _epoch(span.start), _epoch(span.until)
    held["from_second"], held["to_second"] = start.clip(low, high), end.clip(low, high)
    held["held_seconds"] = held["to_second"] - held["from_second"]
    held["start_second"], held["whole_seconds"] = start, end - start
    return held


def _useful(held: pd.DataFrame) -> pd.Series[int]:
    """The useful GPU-seconds of each attempt inside the span, spread evenly over the attempt.

    Cut as a running total, so that the parts of an attempt add up to the whole exactly.
    """
    useful = held["useful_gpu_seconds"].astype("int64")
    whole = held["whole_seconds"].where(held["whole_seconds"] > 0, 1)
    until = useful * (held["to_second"] - held["start_second"]) // whole
    before = useful * (held["from_second"] - held["start_second"]) // whole
    return until - before


def _put_back(evicted: pd.DataFrame, jobs: pd.DataFrame) -> pd.Series[bool]:
    """Whether each evicted attempt's job went back to the queue: it did not end there and then."""
    ends = evicted[JOB].merge(jobs[[*JOB, "end_at"]], on=JOB, how="left")["end_at"]
    ends.index = evicted.index
    return ends.isna() | (ends > evicted["end_at"])


def _placed(jobs: pd.DataFrame, attempts: pd.DataFrame, span: Span) -> pd.DataFrame:
    """The jobs that can wait as they stood at the span's end, `pool` being that of the first start.

    One that started later is in no pool yet. A first attempt that ended before the span is not
    among the attempts: then the job's own pool stands for it.
    """
    asked = jobs[jobs["state"] != "unschedulable"]
    first = attempts.loc[attempts["number"] == 1, [*JOB, "pool"]]
    first = first.rename(columns={"pool": "first_pool"}).drop_duplicates(JOB)
    asked = asked.merge(first, on=JOB, how="left")
    asked["first_start_at"] = asked["first_start_at"].where(
        asked["first_start_at"] < pd.Timestamp(span.until)
    )
    asked["pool"] = asked["first_pool"].fillna(asked["pool"])
    asked["pool"] = asked["pool"].where(asked["first_start_at"].notna(), "")
    return asked.drop(columns="first_pool")


def _waited(asked: pd.DataFrame, held: pd.DataFrame, span: Span) -> list[int]:
    """The seconds of the span in which each job waited: there, but holding nothing."""
    low, high = _epoch(span.start), _epoch(span.until)
    # A record without attempts tells of the first wait only.
    only_first = (asked["attempts_count"] == 0) & asked["first_start_at"].notna()
    over = asked["first_start_at"].where(only_first, asked["end_at"])
    end = _seconds(pd.to_datetime(over, utc=True).fillna(pd.Timestamp(span.until)))
    there = end.clip(low, high) - _seconds(asked["submit_at"]).clip(low, high)
    running = held.groupby(JOB, as_index=False)["held_seconds"].sum()
    ran = asked[JOB].merge(running, on=JOB, how="left")["held_seconds"].fillna(0)
    ran = ran.where(~only_first.to_numpy(), 0)
    return [max(0, int(a - b)) for a, b in zip(there, ran, strict=True)]


def _entitled(levels: pd.DataFrame, held: pd.DataFrame, span: Span) -> pd.DataFrame:
    """Entitled GPU-seconds of each project and pool, and how many of them lay idle.

    Idle is looked at second by second: entitlement that is missed while a run is over is not made
    up for by borrowing later.
    """
    rows = []
    work = dict(iter(held.groupby(["project", "pool"])))
    low, high = _epoch(span.start), _epoch(span.until)
    levels = levels.assign(
        since=_seconds(levels["start_at"]).clip(low, high),
        until=_seconds(levels["end_at"]).clip(low, high),
    )
    for (project, pool), level in levels.groupby(["project", "pool"]):
        since, until = level["since"].to_numpy(), level["until"].to_numpy()
        nominal = level["nominal_gpus"].to_numpy(dtype="int64")
        entitled = int((nominal * (until - since)).sum())
        runs = work.get((project, pool), held.iloc[:0])
        gpus = runs["gpus"].to_numpy(dtype="int64")
        at = np.concatenate([since, until, runs["from_second"], runs["to_second"]])
        # What is entitled and not held, as steps up and down; only what is above zero is idle.
        step = np.concatenate([nominal, -nominal, -gpus, gpus])
        order = np.argsort(at, kind="stable")
        open_gpus = np.cumsum(step[order])[:-1]
        idle = int((np.maximum(open_gpus, 0) * np.diff(at[order])).sum())
        rows.append((project, "", pool, entitled, idle))
    columns = [*KEYS_OF_WORK, "entitled_gpu_seconds", "idle_gpu_seconds"]
    return pd.DataFrame(rows, columns=columns)


def _queue(
    jobs: pd.DataFrame, attempts: pd.DataFrame, span: Span, tenants: Mapping[str, str]
) -> pd.DataFrame:
    """The jobs whose first wait the span answers for: those that started in it, or not yet."""
    asked = _placed(jobs, attempts, span)
    asked["tenant"] = [tenants.get(name, "") for name in asked["project"]]
    started_before = asked["first_start_at"] < pd.Timestamp(span.start)
    return asked[~started_before]


# ---- how the figures are made ----------------------------------------------------------------


def _of_scope(
    scope: str, keys: Sequence[str], added: pd.DataFrame, queue: pd.DataFrame, span: Span
) -> pd.DataFrame:
    # Quota is given by project and pool, not by lane: its rows have no lane and are no lane's.
    rows = added if scope != "lane" else added[added["lane"] != ""]
    by = list(keys) or ["_all"]
    rows = rows.assign(_all="")
    sums = rows.groupby(by)[ADDED].sum()
    waited = waits.summary(queue, by=keys, as_of=span.until)
    waited = waited.assign(_all="").set_index(by).reindex(sums.index)

    result = pd.DataFrame(index=sums.index)
    with_quota = sums["entitled_gpu_seconds"] > 0
    entitled = sums["entitled_gpu_seconds"].where(with_quota) / HOUR
    total = added["delivered_gpu_seconds"].sum()
    delivered = sums["delivered_gpu_seconds"]
    result["entitled_gpu_hours"] = entitled
    result["delivered_gpu_hours"] = delivered / HOUR
    result["delivered_entitled_ratio"] = delivered / HOUR / entitled
    result["share_ratio"] = delivered / total if total else np.nan
    if scope in {"total", "tenant", "pool"}:
        result["jain_index"] = _jain_over_projects(rows, by)
    result["useful_gpu_hours"] = sums["useful_gpu_seconds"] / HOUR
    result["idle_entitlement_gpu_hours"] = sums["idle_gpu_seconds"].where(with_quota) / HOUR
    for quantile in ("p50", "p90", "longest"):
        result[f"first_wait_{quantile}_minutes"] = waited[f"{quantile}_seconds"] / 60
    result["still_waiting"] = waited["waiting"].fillna(0)
    result["waited_job_hours"] = sums["waited_seconds"] / HOUR
    result["lost_gpu_hours"] = sums["lost_gpu_seconds"] / HOUR
    for count in ("jobs_started", "requeues", "outage_interruptions"):
        result[count] = sums[count]
    for count in ("preemptions_suffered", "preemptions_caused"):
        result[count] = sums[count]
    tenant = rows.groupby(by)["tenant"].first()
    result["tenant"] = tenant if scope in {"project", "tenant"} else ""
    if scope == "lane":
        known = [lane for lane in LANES if lane in result.index]
        result = result.reindex([*known, *result.index.difference(known)])
    return result.reset_index(names="name").assign(scope=scope)


def _jain_over_projects(rows: pd.DataFrame, by: list[str]) -> pd.Series[float]:
    """Jain's index of delivered ÷ entitled over the projects that are entitled, in each group."""
    each = rows.groupby([*by, "project"])[["entitled_gpu_seconds", "delivered_gpu_seconds"]].sum()
    each = each[each["entitled_gpu_seconds"] > 0]
    ratios = each["delivered_gpu_seconds"] / each["entitled_gpu_seconds"]
    return ratios.groupby(level=by).agg(jain).astype("Float64")


def _rounded(frame: pd.DataFrame) -> pd.DataFrame:
    """The one place where figures are rounded, halves up; what is unknown becomes <NA>."""
    result = frame.reindex(columns=["scope", "name", "tenant", *ROUNDED])
    for column, digits in ROUNDED.items():
        values = pd.to_numeric(result[column]).astype("Float64")
        values = np.floor(values * 10**digits + 0.5) / 10**digits
        result[column] = values.astype("Int64") if digits == 0 else values
    return result
