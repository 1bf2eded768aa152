"""Puts the frames of a page together into what its template shows."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd

from portal.dashboards import exhibits, selectors
from portal.dashboards.attention import Attention
from portal.dashboards.selectors import Freshness, Signals, Storage, Work
from portal.dashboards.windows import Window
from portal.exhibits import Exhibit
from portal.fleet.models import Pool, Region
from portal.policy import selectors as policy
from portal.telemetry import selectors as telemetry
from portal.telemetry import versions

Row = dict[str, Any]


def record(frame: pd.DataFrame, *keys: Any) -> Row:
    """One row of a grouped frame by the values of its first columns; all unknown without one."""
    for column, key in zip(frame.columns, keys, strict=False):
        frame = frame[frame[column] == key]
    return records(frame.head(1))[0] if len(frame) else dict.fromkeys(map(str, frame.columns))


def records(frame: pd.DataFrame) -> list[Row]:
    """The rows of a frame for a template; unknown is None."""
    plain = frame.astype(object).where(frame.notna(), None)
    return [
        {str(key): value.item() if isinstance(value, np.generic) else value
         for key, value in row.items()}
        for row in plain.to_dict("records")
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a region's cards; None is unknown."""

    gpus: int
    free: float | None
    free_premium: float | None
    free_at: datetime | None
    use: float | None
    use_change: float | None
    primary: Row
    primary_change: float | None
    lost_gpu_seconds: float | None
    lost_ratio: float | None
    evictions: int
    storage: Storage
    stale: bool


@dataclass(frozen=True, slots=True)
class RegionPage:
    """All that the region page shows."""

    region: Region
    window: Window
    pools: list[Row]
    freshness: list[Freshness]
    live: bool
    coverage: float | None
    figures: Figures
    attentions: list[Attention]
    exhibit: Exhibit
    table: pd.DataFrame


def free_now(
    pools: Collection[Pool], *, held: pd.DataFrame, reporting: pd.DataFrame
) -> dict[str, float | None]:
    """Free GPUs by pool: those that report less those held; unknown when nothing was sampled."""
    used = held.groupby("pool")["value"].sum() if len(held) else pd.Series(dtype="float64")
    there = reporting.set_index("pool")["value"] if len(reporting) else used.iloc[:0]
    return {
        pool.name: max(0.0, float(there.get(pool.name, pool.gpus)) - float(used[pool.name]))
        if pool.name in used.index
        else None
        for pool in pools
    }


def known_sum(values: Collection[float | None]) -> float | None:
    """The sum of what is known; None when nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def region_page(*, region: Region, window: Window, now: datetime, csv_url: str) -> RegionPage:
    """Gathers a region: cards, attention, the one-axis chart and its pools."""
    pools = selectors.pools_of(region=region)
    names = [pool.name for pool in pools]
    at = selectors.generation()
    signals = selectors.signals(regions=[region.name], pools=names, window=window, at=at)
    waiting = selectors.waiting_gpus(regions=[region.name], window=window, at=at)
    checkpoints = selectors.storage(regions=[region.name], window=window, at=at)
    done = selectors.work(
        window=window, now=now, regions=[region.name], pools=names, start=window.before[0]
    )
    held = selectors.held_now(region=region.name, now=now)
    reporting = selectors.reporting_now(region=region.name, now=now)
    quotas = policy.quotas_in_force(at=now, pools=names)
    fresh = telemetry.freshness(region=region.name, now=now)
    coverage = telemetry.coverage(region=region.name, start=window.start, end=min(window.end, now))
    outages = selectors.outages(region=region, start=window.start, end=window.end)
    found = selectors.attentions(
        region=region, pools=pools, freshness=fresh, coverage=coverage, done=done, held=held,
        quotas=quotas, hourly=signals.shown(window), checkpoints=checkpoints, now=now,
    )  # fmt: skip
    changed = policy.changes(start=window.start, end=window.end, dimension="quota")
    changed = changed[
        changed["what"].map(lambda what: any(name in what for name in names)).astype(bool)
    ]
    marks = [
        *exhibits.outage_marks(outages, now=now),
        *exhibits.stall_marks(found),
        *exhibits.quota_marks(changed, of_project=False),
        *exhibits.query_marks(
            versions.changes_of_any(
                signals=exhibits.SIGNALS, start=window.start, end=window.end, region=region.name
            )
        ),
    ]
    exhibit = exhibits.one_axis(
        signals=signals, waiting=waiting, checkpoints=checkpoints, marks=marks, window=window,
        now=now, csv_url=csv_url,
        sources=exhibits.sources(
            exhibits.SIGNALS, window=window, freshness=fresh,
            queries=selectors.queries(region=region.name, signals=exhibits.SIGNALS),
        ),
    )  # fmt: skip
    free = free_now(pools, held=held, reporting=reporting)
    groups = selectors.freshness_of(fresh)
    return RegionPage(
        region=region,
        window=window,
        pools=pool_rows(
            pools, free=free, signals=signals, done=done, held=held, quotas=quotas, window=window
        ),
        freshness=selectors.in_short(groups),
        live=any(group.state == "live" for group in groups),
        coverage=coverage,
        figures=_figures(pools, free, held, groups, signals, done, checkpoints, window),
        attentions=found,
        exhibit=exhibit,
        table=exhibits.region_table(signals, waiting, checkpoints, window),
    )


def _figures(
    pools: list[Pool],
    free: dict[str, float | None],
    held: pd.DataFrame,
    groups: list[Freshness],
    signals: Signals,
    done: Work,
    checkpoints: Storage,
    window: Window,
) -> Figures:
    use = signals.use(window.start, window.end)
    use_before = signals.use(*window.before)
    primary = record(done.waits("lane"), "primary")
    before = record(done.previous().waits("lane"), "primary")
    held_hours = signals.shown(window)["held"]
    held_seconds = float(held_hours.sum()) * 3600 if held_hours.notna().any() else None
    evicted = done.evicted
    lost = float(evicted["lost_gpu_seconds"].sum()) if len(done.jobs) else None
    return Figures(
        gpus=sum(pool.gpus for pool in pools),
        free=known_sum(free.values()),
        free_premium=known_sum([free[pool.name] for pool in pools if pool.premium]),
        free_at=held["at"].max().to_pydatetime() if len(held) else None,
        use=use,
        use_change=None if use is None or use_before is None else use - use_before,
        primary=primary,
        primary_change=(
            primary["p95_seconds"] - before["p95_seconds"]
            if primary["jobs"] and before["jobs"]
            else None
        ),
        lost_gpu_seconds=lost,
        lost_ratio=None if lost is None or not held_seconds else lost / held_seconds,
        evictions=len(evicted),
        storage=checkpoints,
        stale=groups[0].state in {"stale", "never"},
    )


def pool_rows(
    pools: list[Pool],
    *,
    free: dict[str, float | None],
    signals: Signals,
    done: Work,
    held: pd.DataFrame,
    quotas: pd.DataFrame,
    window: Window,
) -> list[Row]:
    """One row a pool: free GPUs, use, waits of what ran there, what was lost, and its quotas."""
    by_pool = done.waits("pool")
    evicted = done.evicted
    table = selectors.quota_table(
        quotas=quotas, held=held, gpus={pool.name: pool.gpus for pool in pools}
    )
    waiting = done.waiting
    rows = []
    for pool in pools:
        mine = table[table["pool"] == pool.name]
        hopes = hopes_for(waiting, pool=pool.name, quotas=quotas)
        lost = evicted[evicted["pool"] == pool.name]["lost_gpu_seconds"].sum()
        rows.append(
            {
                "pool": pool,
                "free": free[pool.name],
                "use": signals.use_of_pool(pool.name, window.start, window.end),
                "waits": record(by_pool, pool.name),
                "at_least": bool(hopes.any()),
                "lost": float(lost) if len(done.jobs) else None,
                "used": _total(mine, "used"),
                "borrowed": _total(mine, "borrowed"),
                "nominal": _total(mine, "nominal_gpus"),
            }
        )
    return rows


def hopes_for(waiting: pd.DataFrame, *, pool: str, quotas: pd.DataFrame) -> pd.Series[bool]:
    """Which waiting jobs may run in a pool: it is named, or none is and the project has quota."""
    having = set(quotas[quotas["pool"] == pool]["project"])
    hopes = [
        pool in allowed if allowed else project in having
        for allowed, project in zip(waiting["pools"], waiting["project"], strict=True)
    ]
    return pd.Series(hopes, index=waiting.index, dtype=bool)


def _total(frame: pd.DataFrame, column: str) -> float | None:
    total = frame[column].astype("float64").sum(min_count=1)
    return None if math.isnan(total) else float(total)
