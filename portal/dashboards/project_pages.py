"""Puts together what the pages about quota show: a lead's own quota, a project, a pool."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pandas as pd
from django.utils.translation import get_language, gettext

from planner.vocabulary import SENTENCES, Reason
from portal.dashboards import figures, measures, selectors
from portal.dashboards.exhibits import quota_marks, sources, window_note, words
from portal.dashboards.figures import LANES, Mark
from portal.dashboards.pages import Row, free_now, hopes_for, pool_rows, records
from portal.dashboards.selectors import Freshness, Work
from portal.dashboards.windows import Window
from portal.exhibits import Exhibit, Key
from portal.fleet.models import Pool, Region
from portal.policy import selectors as policy
from portal.telemetry import selectors as telemetry
from portal.tenants.models import Project

MOST_LAYERS = 8
MOST_JOBS = 50


def why(reason: str) -> str:
    """The sentence of a reason, in the reader's language; an unknown one as the source wrote it."""
    try:
        sentence = SENTENCES[Reason(reason)]
    except ValueError:
        return reason
    return sentence.ja if (get_language() or "").startswith("ja") else sentence.en


def lane_order(rows: list[Row]) -> list[Row]:
    """Rows by lane, the most important first."""
    known = {lane: place for place, lane in enumerate(LANES)}
    return sorted(rows, key=lambda row: known.get(str(row["lane"]), len(known)))


@dataclass(frozen=True, slots=True)
class Held:
    """What is held now in some regions, and how old that is."""

    frame: pd.DataFrame
    oldest: datetime | None
    state: str


def held_everywhere(*, regions: Collection[Region], now: datetime) -> Held:
    """GPUs held now by pool and project in several regions, as old as the oldest of them."""
    frames = [selectors.held_now(region=region.name, now=now) for region in regions]
    known = [frame for frame in frames if len(frame)]
    frame = pd.concat(known) if known else pd.DataFrame(columns=["pool", "project", "value", "at"])
    oldest = min((part["at"].max() for part in known), default=None)
    if oldest is None:
        return Held(frame, None, "never")
    age = (pd.Timestamp(now) - oldest).total_seconds()
    state = "live" if age <= 900 else "late" if age <= 3600 else "stale"
    return Held(frame, oldest.to_pydatetime(), state)


@dataclass(frozen=True, slots=True)
class Losses:
    """What interruptions cost in a window and in the one before."""

    gpu_seconds: float | None
    before_gpu_seconds: float | None
    evictions: int
    by_lane: list[Row]


def losses(done: Work) -> Losses:
    """Lost GPU-seconds of evicted attempts, in sum and by who displaced them (a lane, no names)."""
    if done.jobs.empty:
        return Losses(None, None, 0, [])
    evicted = done.evicted
    causes = evicted.assign(by=evicted["evicted_by_lane"].where(evicted["evicted_by_lane"] != ""))
    grouped = (
        causes.fillna({"by": "–"})
        .groupby(["by", "ground"])
        .agg(evictions=("number", "size"), lost=("lost_gpu_seconds", "sum"))
        .reset_index()
        .sort_values("lost", ascending=False)
    )
    return Losses(
        float(evicted["lost_gpu_seconds"].sum()),
        float(done.previous().evicted["lost_gpu_seconds"].sum()),
        len(evicted),
        records(grouped),
    )


@dataclass(frozen=True, slots=True)
class OwnQuota:
    """Quota, waits and losses of some projects."""

    held: Held
    quotas: list[Row]
    waits: list[Row]
    losses: Losses
    still_waiting: int
    known_until: datetime | None


def own(
    *, projects: Collection[str], window: Window, now: datetime, per_project: bool = True
) -> OwnQuota:
    """What some projects have, use, wait for and lose; always with the age of the figures."""
    pools = selectors.pools_of()
    held = held_everywhere(regions={pool.domain.region for pool in pools}, now=now)
    quotas = policy.quotas_in_force(at=now, projects=projects)
    table = selectors.quota_table(
        quotas=quotas, held=held.frame, gpus={pool.name: pool.gpus for pool in pools}
    )
    done = selectors.work(window=window, now=now, projects=projects, start=window.before[0])
    by = ("project", "lane") if per_project else ("lane",)
    return OwnQuota(
        held=held,
        quotas=records(table),
        waits=lane_order(records(done.waits(*by))),
        losses=losses(done),
        still_waiting=len(done.waiting),
        known_until=telemetry.known_until(),
    )


@dataclass(frozen=True, slots=True)
class ProjectPage:
    """All that a project's page shows."""

    own: OwnQuota
    jobs: list[Row]
    exhibit: Exhibit
    table: pd.DataFrame


def project_page(*, project: Project, window: Window, now: datetime, csv_url: str) -> ProjectPage:
    """Gathers a project: its quota per pool, waits, jobs with the reason they wait, losses."""
    mine = own(projects=[project.name], window=window, now=now, per_project=False)
    done = selectors.work(window=window, now=now, projects=[project.name])
    at = selectors.generation()
    held = selectors.held_by(
        by="pool", projects=[project.name], pools=None, regions=None, window=window, at=at
    )
    nominal = selectors.nominal_by_hour(project=project.name, start=window.start, end=window.end)
    changed = policy.changes(start=window.start, end=window.end, project=project, dimension="quota")
    table = held.round(2).assign(nominal_gpus=nominal)
    table.insert(0, "hour", pd.DatetimeIndex(held.index).tz_convert(window.zone))
    exhibit = _held_exhibit(
        held=held,
        limit=nominal,
        marks=quota_marks(changed, of_project=True),
        title=gettext("GPUs held, by pool"),
        table=table.reset_index(drop=True),
        freshness=None,
        window=window,
        now=now,
        csv_url=csv_url,
    )
    return ProjectPage(mine, job_rows(done), exhibit, table.reset_index(drop=True))


def job_rows(done: Work) -> list[Row]:
    """Jobs that wait or run, those that wait longest first, each with the reason in a sentence."""
    shown = done.jobs[done.jobs["state"].isin(["waiting", "running", "suspended", "unschedulable"])]
    order = {"unschedulable": 0, "waiting": 1, "suspended": 2, "running": 3}
    shown = shown.assign(order=shown["state"].map(order)).sort_values(["order", "submit_at"])
    rows = records(shown.head(MOST_JOBS))
    for row in rows:
        until = row["first_start_at"] or done.as_of
        row["wait_seconds"] = max(0.0, (until - row["submit_at"]).total_seconds())
        row["why"] = why(row["reason"]) if row["reason"] else ""
    return rows


@dataclass(frozen=True, slots=True)
class PoolPage:
    """All that a pool's page shows."""

    pool: Row
    freshness: list[Freshness]
    quotas: list[Row]
    others: Row
    waiting: list[Row]
    exhibit: Exhibit
    oversubscription: Row
    table: pd.DataFrame


def pool_page(
    *, pool: Pool, seen: Collection[str], window: Window, now: datetime, csv_url: str
) -> PoolPage:
    """Gathers a pool: quota by project, use over time, who waits. Others stay unnamed."""
    region = pool.domain.region
    at = selectors.generation()
    signals = selectors.signals(regions=[region.name], pools=[pool.name], window=window, at=at)
    done = selectors.work(
        window=window, now=now, regions=[region.name], pools=[pool.name], start=window.before[0]
    )
    held = selectors.held_now(region=region.name, now=now)
    held = held[held["pool"] == pool.name]
    reporting = selectors.reporting_now(region=region.name, now=now)
    quotas = policy.quotas_in_force(at=now, pools=[pool.name])
    quota = selectors.quota_table(quotas=quotas, held=held, gpus={pool.name: pool.gpus})
    row = pool_rows(
        [pool], free=free_now([pool], held=held, reporting=reporting), signals=signals, done=done,
        held=held, quotas=quotas, window=window,
    )[0]  # fmt: skip
    named = quota["project"].isin(set(seen))
    waiting = done.waiting
    waiting = waiting[hopes_for(waiting, pool=pool.name, quotas=quotas)]
    by_lane = waiting.groupby("lane").agg(
        jobs=("gpus", "size"), gpus=("gpus", "sum"), since=("submit_at", "min")
    )
    over_time = selectors.held_by(
        by="project", projects=None, pools=[pool.name], regions=[region.name], window=window, at=at
    )
    over_time = fold(over_time, seen=seen, others=gettext("others"))
    table = over_time.round(2)
    table.insert(0, "hour", pd.DatetimeIndex(over_time.index).tz_convert(window.zone))
    fresh = telemetry.freshness(region=region.name, now=now)
    guarded = policy.oversubscription(at=now)
    exhibit = _held_exhibit(
        held=over_time,
        limit=pd.Series(float(pool.gpus), index=over_time.index),
        marks=quota_marks(
            policy.changes(start=window.start, end=window.end, pool=pool, dimension="quota"),
            of_project=False,
        ),
        title=gettext("GPUs held, by project"),
        table=table.reset_index(drop=True),
        freshness=fresh,
        window=window,
        now=now,
        csv_url=csv_url,
        region=region.name,
        limit_name=gettext("the pool"),
    )
    return PoolPage(
        pool=row,
        freshness=selectors.in_short(selectors.freshness_of(fresh)),
        quotas=records(quota[named]),
        others=_others(quota[~named]),
        waiting=lane_order(records(by_lane.reset_index())),
        exhibit=exhibit,
        oversubscription=records(guarded[guarded["pool"] == pool.name])[0],
        table=table.reset_index(drop=True),
    )


def fold(held: pd.DataFrame, *, seen: Collection[str], others: str) -> pd.DataFrame:
    """The columns of projects that may be named, the largest first; all others as one column."""
    named = [column for column in held.columns if column in seen]
    largest = held[named].sum().sort_values(ascending=False).index[: MOST_LAYERS - 1]
    frame = held[list(largest)].copy()
    rest = [column for column in held.columns if column not in set(largest)]
    if rest:
        frame[others] = held[rest].sum(axis=1, min_count=1)
    return frame


def _others(quota: pd.DataFrame) -> Row:
    if quota.empty:
        return {}
    totals: dict[str, Any] = {"projects": len(quota)}
    for column in ("used", "borrowed", "nominal_gpus"):
        total = quota[column].astype("float64").sum(min_count=1)
        totals[column] = None if math.isnan(total) else float(total)
    return totals


def _held_exhibit(
    *,
    held: pd.DataFrame,
    limit: pd.Series[float],
    marks: Sequence[Mark],
    title: str,
    table: pd.DataFrame,
    freshness: pd.DataFrame | None,
    window: Window,
    now: datetime,
    csv_url: str,
    region: str = "",
    limit_name: str = "",
) -> Exhibit:
    step = window.step_hours
    said = words()
    figure = figures.held_by(
        held=measures.stepped(held, hours=step),
        limit=measures.stepped(limit.to_frame("limit"), hours=step)["limit"],
        marks=marks,
        start=window.start,
        end=window.end,
        now=now,
        hours=step,
        zone=window.zone,
        words=said | ({"nominal": limit_name} if limit_name else {}),
    )
    found = []
    if freshness is not None:
        found = sources(
            ["quota_used_gpus"], window=window, freshness=freshness,
            queries=selectors.queries(region=region, signals=["quota_used_gpus"]),
        )  # fmt: skip
    return Exhibit(
        slug="held",
        title=title,
        figure=figure if held.notna().any().any() else None,
        table=table.rename(
            columns={"hour": gettext("hour"), "nominal_gpus": gettext("nominal quota")}
        ),
        sources=found,
        csv_url=csv_url,
        note=window_note(window),
        keys=[
            Key(f"series-{min(place, 5)}", str(column)) for place, column in enumerate(held.columns)
        ],
        why_empty=gettext("Nothing was held in this window, or nothing was collected."),
    )
