"""What needs attention in a region, found in frames. Pure: no database, no words.

Each rule returns `Attention` values; `sentences.py` says them in the reader's language and hides
the names that the reader may not see.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

import pandas as pd

from portal.dashboards.measures import stretches

LONG_WAIT = timedelta(hours=2)
URGENT_LANES = ("emergency",)
IMPORTANT_LANES = ("emergency", "primary")
URGENT_SHARE = 0.5
URGENT_LEAST_JOBS = 10
STALL_TIMES_USUAL = 2.0
LOW_COVERAGE = 0.95


class Kind(StrEnum):
    """What is the matter."""

    STARVATION = "starvation"
    MAY_NOT_BORROW = "may_not_borrow"
    ALL_URGENT = "all_urgent"
    CHECKPOINT_DOMAIN = "checkpoint_domain"
    STORAGE_STALL = "storage_stall"
    STALE = "stale"
    NEVER = "never"
    COVERAGE = "coverage"


@dataclass(frozen=True, slots=True)
class Attention:
    """One matter: how bad, where, whose, since when, and the numbers of its sentence."""

    kind: Kind
    level: str
    region: str
    pool: str = ""
    projects: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    values: Mapping[str, float | str | None] = field(default_factory=dict)


def starvation(
    *, region: str, waiting: pd.DataFrame, held: pd.DataFrame, quotas: pd.DataFrame, now: datetime
) -> list[Attention]:
    """Important work waits long while another project borrows in the pool it has quota in.

    Inside its own quota that is urgent; at a quota beyond which it may not borrow, a warning.

    `waiting`: jobs without a start (project, lane, gpus, submit_at). `held`: GPUs held now (pool,
    project, value). `quotas`: in force (pool, project, nominal_gpus, borrowing_limit_gpus).
    """
    if waiting.empty or held.empty or quotas.empty:
        return []
    late = waiting[
        waiting["lane"].isin(IMPORTANT_LANES)
        & (waiting["submit_at"] < pd.Timestamp(now - LONG_WAIT))
    ]
    found = []
    owned = quotas.merge(held, on=["pool", "project"], how="left")
    owned["value"] = owned["value"].astype("float64").fillna(0.0)
    owned["nominal"] = owned["nominal_gpus"].astype("float64")
    # No borrowing limit is no limit.
    borrowing = owned["borrowing_limit_gpus"].astype("float64").fillna(float("inf"))
    owned["limit"] = owned["nominal"] + borrowing
    for pool, rows in owned.groupby("pool", sort=True):
        borrowers = rows[rows["value"] > rows["nominal"]].sort_values("value", ascending=False)
        hopes = late.merge(rows[["project", "nominal", "limit", "value"]], on="project")
        hopes = hopes[~hopes["project"].isin(set(borrowers["project"]))]
        after = hopes["value"] + hopes["gpus"]
        inside = hopes[after <= hopes["nominal"]]
        at_limit = hopes[(after > hopes["limit"]) & (hopes["limit"] <= hopes["nominal"])]
        if borrowers.empty:
            continue
        top = borrowers.iloc[0]
        for kind, level, starved in (
            (Kind.STARVATION, "bad", inside),
            (Kind.MAY_NOT_BORROW, "warn", at_limit),
        ):
            if starved.empty:
                continue
            ages = (pd.Timestamp(now) - starved["submit_at"]).dt.total_seconds()
            found.append(
                Attention(
                    kind, level, region, str(pool),
                    (str(top["project"]), *sorted(set(starved["project"]))),
                    since=starved["submit_at"].min().to_pydatetime(),
                    values={
                        "jobs": len(starved),
                        "lane": str(starved["lane"].mode().iloc[0]),
                        "seconds": float(ages.min()),
                        "gpus": float(top["value"] - top["nominal"]),
                    },
                )
            )  # fmt: skip
    return found


def all_urgent(*, region: str, jobs: pd.DataFrame) -> list[Attention]:
    """A project marks most of its work with the most urgent lane: then nothing is urgent."""
    found = []
    for project, rows in jobs.groupby("project", sort=True):
        share = float(rows["lane"].isin(URGENT_LANES).mean())
        if len(rows) >= URGENT_LEAST_JOBS and share >= URGENT_SHARE:
            found.append(
                Attention(
                    Kind.ALL_URGENT, "warn", region, projects=(str(project),),
                    since=rows["submit_at"].min().to_pydatetime(),
                    values={"share": share, "jobs": len(rows)},
                )
            )  # fmt: skip
    return found


def checkpoint_domain(
    *, region: str, pools: Iterable[Mapping[str, str]], running: pd.DataFrame
) -> list[Attention]:
    """Checkpoints lie in the failure domain of the pool they are for: they would die with it.

    `pools`: name, domain, storage, storage_domain. `running`: attempts that run now (pool,
    useful_gpu_seconds).
    """
    found = []
    for pool in pools:
        if not pool["storage_domain"] or pool["storage_domain"] != pool["domain"]:
            continue
        there = running[running["pool"] == pool["name"]]
        if there.empty:
            continue
        found.append(
            Attention(
                Kind.CHECKPOINT_DOMAIN, "warn", region, pool["name"],
                values={
                    "storage": pool["storage"],
                    "domain": pool["domain"],
                    "jobs": len(there),
                    "gpu_seconds": float(there["useful_gpu_seconds"].sum()),
                },
            )
        )  # fmt: skip
    return found


def storage_stalls(
    *,
    region: str,
    write_p95: pd.Series[float],
    usual_high: float | None,
    in_use: pd.Series[float],
    evictions: pd.Series[float],
) -> list[Attention]:
    """Use fell because checkpoints could not be written: storage, not compute.

    Hourly series. A stall is where the write p95 is over twice the usual upper bound; the fall is
    measured against the median use of the six hours before.
    """
    if usual_high is None or write_p95.empty:
        return []
    found = []
    for stretch in stretches(write_p95 > STALL_TIMES_USUAL * usual_high):
        start, end = pd.Timestamp(stretch.start), pd.Timestamp(stretch.end)
        inside = in_use[(in_use.index >= start) & (in_use.index < end)]
        before = in_use[(in_use.index >= start - pd.Timedelta(hours=6)) & (in_use.index < start)]
        usual = float(before.median()) if before.notna().any() else float("nan")
        fall = 1 - float(inside.min()) / usual if usual else float("nan")
        lost = evictions[(evictions.index >= start) & (evictions.index < end)].sum()
        peak = write_p95[(write_p95.index >= start) & (write_p95.index < end)].max()
        found.append(
            Attention(
                Kind.STORAGE_STALL, "warn", region, since=stretch.start, until=stretch.end,
                values={
                    "fall": None if math.isnan(fall) else max(fall, 0.0),
                    "evictions": float(lost),
                    "peak_seconds": float(peak),
                    "usual_seconds": usual_high,
                },
            )
        )  # fmt: skip
    return found


def data_quality(
    *, region: str, freshness: pd.DataFrame, coverage: float | None, now: datetime
) -> list[Attention]:
    """The figures are older than they should be, or stand on too little."""
    found = []
    stale = freshness[freshness["state"] == "stale"]
    if freshness.empty or (freshness["state"] == "never").all():
        found.append(Attention(Kind.NEVER, "bad", region))
    elif not stale.empty:
        age = float(stale["age_seconds"].max())
        found.append(
            Attention(
                Kind.STALE, "bad" if len(stale) == len(freshness) else "warn", region,
                since=now - timedelta(seconds=age),
                values={
                    "signals": len(stale), "all": len(freshness), "seconds": age,
                    "names": ", ".join(stale["signal"]),
                },
            )
        )  # fmt: skip
    if coverage is not None and coverage < LOW_COVERAGE:
        found.append(Attention(Kind.COVERAGE, "warn", region, values={"ratio": coverage}))
    return found


def worst_first(found: Iterable[Attention]) -> list[Attention]:
    """Bad before warnings, and the newest first among equals that have an instant."""
    order = {"bad": 0, "warn": 1}
    return sorted(
        found,
        key=lambda item: (order[item.level], -(item.since.timestamp() if item.since else 0.0)),
    )
