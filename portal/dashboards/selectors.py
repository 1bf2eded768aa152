"""Reads for the dashboards, in one place: what each page shows, as frames and small values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import TypeVar, cast

import pandas as pd
from django.core.cache import cache
from django.db.models import Count, Q, Sum

from portal.accounts.models import User
from portal.dashboards import attention, measures
from portal.dashboards.attention import Attention
from portal.dashboards.windows import Window
from portal.fleet.models import Outage, Pool, Region
from portal.policy.models import Quota
from portal.requests.models import QuotaRequest, RequestState
from portal.telemetry import selectors as telemetry
from portal.telemetry import waits
from portal.telemetry.histograms import added
from portal.telemetry.models import (
    CollectionRun,
    HourRollup,
    ImportBatch,
    RunState,
    SignalFetch,
)
from portal.tenants.selectors import visible_projects

GROUPS = {
    "compute": ("gpu_", "quota_"),
    "queue": ("pending_", "wait_", "admitted_", "evicted_"),
    "storage": ("checkpoint_",),
}
USUAL = timedelta(days=28)
ALIKE = timedelta(minutes=10)
REMEMBERED_SECONDS = 600
JOB_COLUMNS = [
    "job_id", "project", "lane", "pool", "gpus", "submit_at", "first_start_at", "end_at", "state",
    "reason", "pools",
]  # fmt: skip
ATTEMPT_COLUMNS = [
    "job_id", "number", "project", "lane", "gpus", "pool", "start_at", "end_at", "ended", "ground",
    "evicted_by_lane", "useful_gpu_seconds", "lost_gpu_seconds",
]  # fmt: skip
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Freshness:
    """How old one group of signals is: the age of its oldest signal."""

    group: str
    state: str
    last_sample_at: datetime | None


@dataclass(frozen=True, slots=True)
class Signals:
    """The collected hours of some regions or pools: two windows, the one shown and the one before.

    `hourly`: in_use, idle, free, held, total. `by_pool`: held, active and reporting GPUs per pool.
    """

    hourly: pd.DataFrame
    held: pd.DataFrame
    active: pd.DataFrame
    reporting: pd.DataFrame

    def shown(self, window: Window) -> pd.DataFrame:
        """The hours of the window itself."""
        return self.hourly[self.hourly.index >= pd.Timestamp(window.start)]

    def use(self, start: datetime, end: datetime) -> float | None:
        """The share of reporting GPUs that worked in [start, end)."""
        inside = self.hourly[
            (self.hourly.index >= pd.Timestamp(start)) & (self.hourly.index < pd.Timestamp(end))
        ].dropna(subset=["in_use", "total"])
        total = float(inside["total"].sum())
        return float(inside["in_use"].sum()) / total if total else None

    def use_of_pool(self, pool: str, start: datetime, end: datetime) -> float | None:
        """The same of one pool."""
        if pool not in self.active or pool not in self.reporting:
            return None
        both = pd.DataFrame({"in_use": self.active[pool], "total": self.reporting[pool]}).dropna()
        both = both[(both.index >= pd.Timestamp(start)) & (both.index < pd.Timestamp(end))]
        total = float(both["total"].sum())
        return float(both["in_use"].sum()) / total if total else None


@dataclass(frozen=True, slots=True)
class Work:
    """Job records: the wait of those submitted in the window or still waiting, and the losses."""

    jobs: pd.DataFrame
    attempts: pd.DataFrame
    as_of: datetime
    start: datetime
    end: datetime

    @property
    def submitted(self) -> pd.DataFrame:
        """Jobs submitted in the window, and those that were still waiting at its end."""
        instant = pd.Timestamp(self.as_of)
        start, end = self.jobs["first_start_at"], self.jobs["end_at"]
        late = (start.isna() | (start > instant)) & (end.isna() | (end > instant))
        return self.jobs[(self.jobs["submit_at"] >= pd.Timestamp(self.start)) | late]

    @property
    def waiting(self) -> pd.DataFrame:
        """Jobs without a start yet."""
        return self.jobs[self.jobs["state"].isin(["waiting"]) & self.jobs["first_start_at"].isna()]

    @property
    def evicted(self) -> pd.DataFrame:
        """Attempts that ended by eviction in the window."""
        ended = self.attempts["end_at"]
        inside = (ended >= pd.Timestamp(self.start)) & (ended < pd.Timestamp(self.end))
        return self.attempts[(self.attempts["ended"] == "evicted") & inside]

    @property
    def running(self) -> pd.DataFrame:
        """Attempts that run now."""
        return self.attempts[self.attempts["end_at"].isna()]

    def previous(self) -> Work:
        """The same records as they stood in the stretch of the same length before."""
        length = self.end - self.start
        return Work(self.jobs, self.attempts, self.start, self.start - length, self.start)

    def waits(self, *by: str) -> pd.DataFrame:
        """First-start waits by group, jobs that still wait counted with their age."""
        return waits.summary(self.submitted, by=by, as_of=self.as_of)


def generation() -> str:
    """Changes whenever hours were collected: what is remembered under it stays true."""
    run = CollectionRun.objects.order_by("-pk").values_list("pk", "state").first()
    newest = HourRollup.objects.order_by("-pk").values_list("pk", flat=True).first()
    return f"{run}/{newest}"


def _remembered(what: str, key: object, make: Callable[[], T]) -> T:
    name = f"dashboards/{what}/{sha256(repr(key).encode()).hexdigest()}"
    return cast("T", cache.get_or_set(name, make, REMEMBERED_SECONDS))


def pools_of(*, region: Region | None = None) -> list[Pool]:
    """The pools of a region, or all."""
    pools = Pool.objects.select_related("domain__region", "storage__domain")
    return list(pools.filter(domain__region=region) if region else pools)


def hours_of(
    signal: str,
    *,
    regions: Collection[str] | None,
    start: datetime,
    end: datetime,
    by: Sequence[str],
    at: str,
) -> pd.DataFrame:
    """Hours of a signal, remembered for as long as nothing new was collected (`at`)."""
    return _remembered(
        signal,
        (regions and sorted(regions), start, end, by, at),
        lambda: telemetry.hours(signal=signal, start=start, end=end, regions=regions, by=by),
    )


def signals(
    *, regions: Collection[str], pools: Collection[str], window: Window, at: str
) -> Signals:
    """The GPU signals of some pools over a window and the one before it."""
    return _remembered(
        "signals",
        (sorted(regions), sorted(pools), window, at),
        lambda: _signals(regions, pools, window, at),
    )


def _signals(regions: Collection[str], pools: Collection[str], window: Window, at: str) -> Signals:
    start, end = window.before[0], window.end
    wide: dict[str, pd.DataFrame] = {}
    for name in ("quota_used_gpus", "gpu_engine_active_gpus", "gpu_reporting_gpus"):
        rows = hours_of(name, regions=regions, start=start, end=end, by=("pool",), at=at)
        frame = measures.by_hour(rows[rows["pool"].isin(set(pools))], column="pool")
        wide[name] = pd.DataFrame(frame)
    held, active, reporting = wide.values()
    total = [frame.sum(axis=1, min_count=1) for frame in (held, active, reporting)]
    hourly = measures.compute(
        held=total[0], active=total[1], reporting=total[2], start=start, end=end
    )
    return Signals(hourly, held, active, reporting)


def waiting_gpus(*, regions: Collection[str], window: Window, at: str) -> pd.DataFrame:
    """Per hour: GPUs that jobs wait for, one column per lane."""
    rows = hours_of(
        "pending_gpus", regions=regions, start=window.start, end=window.end, by=("lane",), at=at
    )
    frame = pd.DataFrame(measures.by_hour(rows, column="lane"))
    return frame.reindex(measures.grid(window.start, window.end))


@dataclass(frozen=True, slots=True)
class Storage:
    """Checkpoint writes: p95 per hour and over the window, and between which it usually lies."""

    hourly: pd.Series[float]
    stepped: pd.Series[float]
    p95: float | None
    more_than: bool
    usual: tuple[float, float] | None


def storage(*, regions: Collection[str], window: Window, at: str) -> Storage:
    """Checkpoint write times of some regions."""
    return _remembered("storage", (sorted(regions), window, at), lambda: _storage(regions, window))


def _storage(regions: Collection[str], window: Window) -> Storage:
    rows = telemetry.hours(
        signal="checkpoint_write_seconds",
        regions=regions,
        start=min(window.start, window.end - USUAL),
        end=window.end,
        by=(),
    )
    hourly = measures.quantile_by_hour(rows, q=0.95)
    inside = rows[rows["hour"] >= pd.Timestamp(window.start)] if len(rows) else rows
    merged = added(inside["buckets"]) if len(inside) else None
    hours = measures.grid(window.start, window.end)
    # Buckets are added up before a quantile is asked for: never a mean of quantiles.
    stepped = measures.quantile_by_hour(inside, q=0.95, hours=window.step_hours)
    return Storage(
        hourly=hourly.reindex(hours),
        stepped=stepped.reindex(hours[:: window.step_hours]),
        p95=telemetry.quantile(merged, 0.95),
        more_than=telemetry.is_more_than(merged, 0.95),
        usual=measures.usual_band(hourly),
    )


def work(
    *,
    window: Window,
    now: datetime,
    regions: Collection[str] | None = None,
    pools: Collection[str] | None = None,
    projects: Collection[str] | None = None,
    start: datetime | None = None,
) -> Work:
    """The job records of a window, as they were known at its end."""
    known = telemetry.known_until()
    as_of = min(now, window.end, known or now)
    since = start or window.start
    newest = ImportBatch.objects.order_by("-pk").values_list("pk", flat=True).first()
    jobs, attempts = _remembered(
        "work",
        (newest, known, since, window.end, *map(_sorted, (regions, pools, projects))),
        lambda: (
            telemetry.jobs(
                start=since, end=window.end, projects=projects, regions=regions, columns=JOB_COLUMNS
            ),
            telemetry.attempts(
                start=since, end=window.end, projects=projects, pools=pools,
                columns=ATTEMPT_COLUMNS,
            ),
        ),
    )  # fmt: skip
    return Work(jobs, attempts, as_of=as_of, start=window.start, end=window.end)


def _sorted(names: Collection[str] | None) -> list[str] | None:
    return None if names is None else sorted(names)


def held_now(*, region: str, now: datetime) -> pd.DataFrame:
    """GPUs held now by pool and project (value, at), however old the newest sample is."""
    return telemetry.latest(
        signal="quota_used_gpus", region=region, by=("pool", "project"), now=now
    )


def reporting_now(*, region: str, now: datetime) -> pd.DataFrame:
    """GPUs that report now, by pool (value, at)."""
    return telemetry.latest(signal="gpu_reporting_gpus", region=region, by=("pool",), now=now)


def freshness_of(frame: pd.DataFrame) -> list[Freshness]:
    """One entry per group of signals: as old as its oldest signal that ever came."""
    found = []
    for group, prefixes in GROUPS.items():
        rows = frame[frame["signal"].str.startswith(prefixes)]
        seen = rows[rows["state"] != "never"]
        if seen.empty:
            found.append(Freshness(group, "never", None))
            continue
        oldest = seen.sort_values("age_seconds").iloc[-1]
        found.append(
            Freshness(group, str(oldest["state"]), oldest["last_sample_at"].to_pydatetime())
        )
    return found


def in_short(groups: list[Freshness]) -> list[Freshness]:
    """One entry instead of several where all groups are in the same state and equally old."""
    times = [group.last_sample_at for group in groups if group.last_sample_at]
    same = len({group.state for group in groups}) == 1
    if not same or (times and max(times) - min(times) > ALIKE):
        return groups
    return [Freshness("", groups[0].state, min(times, default=None))]


def outages(*, region: Region, start: datetime, end: datetime) -> list[Outage]:
    """Outages of a region, its domains and its pools that touch [start, end)."""
    return list(
        Outage.objects.filter(
            Q(region=region) | Q(domain__region=region) | Q(pool__domain__region=region),
            Q(ends_at__isnull=True) | Q(ends_at__gt=start),
            starts_at__lt=end,
        ).select_related("region", "domain", "pool")
    )


def queries(*, region: str, signals: Sequence[str]) -> dict[str, str]:
    """The query that was last asked for each signal."""
    run = (
        CollectionRun.objects.filter(region__name=region, fetches__signal__in=signals)
        .order_by("-started_at")
        .values("pk")[:1]
    )
    return dict(
        SignalFetch.objects.filter(run__in=run, signal__in=signals).values_list("signal", "query")
    )


def names_seen(user: User) -> set[str]:
    """The names of the projects that this person may see."""
    return set(visible_projects(user).values_list("name", flat=True))


def quota_table(*, quotas: pd.DataFrame, held: pd.DataFrame, gpus: dict[str, int]) -> pd.DataFrame:
    """Quotas in force with what is held: own, borrowed, nominal, and the effective limit.

    The limit is nominal plus the borrowing limit, at most the pool. Held is unknown (NaN) for a
    pool of which nothing was ever sampled.
    """
    table = quotas.merge(held[["pool", "project", "value"]], on=["pool", "project"], how="left")
    sampled = set(held["pool"])
    value = table["value"].astype("float64")
    table["used"] = value.where(value.notna() | ~table["pool"].isin(sampled), 0.0)
    nominal = table["nominal_gpus"].astype("float64")
    size = table["pool"].map(gpus).astype("float64")
    borrowing = table["borrowing_limit_gpus"].astype("float64")
    table["limit"] = (nominal + borrowing).where(borrowing.notna(), size).clip(upper=size)
    table["limit"] = table[["limit"]].assign(nominal=nominal).max(axis=1)
    table["own"] = pd.concat([table["used"], nominal], axis=1).min(axis=1, skipna=False)
    table["borrowed"] = table["used"] - table["own"]
    return table


def attentions(
    *,
    region: Region,
    pools: list[Pool],
    freshness: pd.DataFrame,
    coverage: float | None,
    done: Work,
    held: pd.DataFrame,
    quotas: pd.DataFrame,
    hourly: pd.DataFrame,
    checkpoints: Storage,
    now: datetime,
) -> list[Attention]:
    """Everything that needs attention in a region, the worst first."""
    evicted = done.evicted
    evictions = (
        evicted.groupby(evicted["end_at"].dt.floor("h")).size().astype("float64")
        if len(evicted)
        else pd.Series(dtype="float64", index=pd.DatetimeIndex([], tz="UTC"))
    )
    places = [
        {
            "name": pool.name,
            "domain": pool.domain.name,
            "storage": pool.storage.name if pool.storage else "",
            "storage_domain": (
                pool.storage.domain.name if pool.storage and pool.storage.domain else ""
            ),
        }
        for pool in pools
    ]
    return attention.worst_first(
        [
            *attention.data_quality(
                region=region.name, freshness=freshness, coverage=coverage, now=now
            ),
            *attention.starvation(
                region=region.name, waiting=done.waiting, held=held, quotas=quotas, now=done.as_of
            ),
            *attention.all_urgent(region=region.name, jobs=done.submitted),
            *attention.checkpoint_domain(region=region.name, pools=places, running=done.running),
            *attention.storage_stalls(
                region=region.name,
                write_p95=checkpoints.hourly,
                usual_high=checkpoints.usual[1] if checkpoints.usual else None,
                in_use=hourly["in_use"],
                evictions=evictions,
            ),
        ]
    )


def nominal_by_hour(*, project: str, start: datetime, end: datetime) -> pd.Series[float]:
    """A project's nominal quota over all pools, hour by hour; unknown where it had none."""
    rows = (
        Quota.objects.standing()
        .filter(project__name=project, starts_at__lt=end)
        .order_by("starts_at")
        .values_list("pool__name", "starts_at", "nominal_gpus", "withdrawn")
    )
    hours = measures.grid(start, end)
    pools: dict[str, pd.Series[float]] = {}
    for pool, starts_at, nominal, withdrawn in rows:
        series = pools.setdefault(pool, pd.Series(float("nan"), index=hours))
        series[hours >= pd.Timestamp(starts_at)] = float("nan") if withdrawn else float(nominal)
    frame = pd.DataFrame(pools, index=hours)
    return frame.sum(axis=1, min_count=1)


def held_by(
    *,
    by: str,
    projects: Collection[str] | None,
    pools: Collection[str] | None,
    regions: Collection[str] | None,
    window: Window,
    at: str,
) -> pd.DataFrame:
    """GPUs held per hour, one column per pool or project."""
    rows = hours_of(
        "quota_used_gpus", regions=regions, start=window.start, end=window.end,
        by=("pool", "project"), at=at,
    )  # fmt: skip
    if projects is not None:
        rows = rows[rows["project"].isin(set(projects))]
    if pools is not None:
        rows = rows[rows["pool"].isin(set(pools))]
    frame = pd.DataFrame(measures.by_hour(rows, column=by))
    return frame.reindex(measures.grid(window.start, window.end))


def open_requests(user: User, *, most: int) -> list[QuotaRequest]:
    """Requests that wait for a decision, the oldest first; only those of projects they may see."""
    waiting = QuotaRequest.objects.filter(
        state__in=[RequestState.SUBMITTED, RequestState.IN_REVIEW]
    ).select_related("project__tenant", "pool", "requested_by")
    if not user.sees_all_tenants:
        waiting = waiting.filter(project__in=visible_projects(user))
    return list(waiting.order_by("submitted_at", "pk")[:most])


def last_runs(*, region: Region, most: int) -> list[CollectionRun]:
    """The newest collections of a region, with how many of their fetches failed."""
    return list(
        CollectionRun.objects.filter(region=region)
        .annotate(
            asked=Count("fetches"),
            failed=Count("fetches", filter=Q(fetches__state=RunState.FAILED)),
            came=Sum("fetches__samples"),
        )
        .order_by("-started_at")[:most]
    )
