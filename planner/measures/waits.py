"""How long jobs waited: to their first start, or in total with every re-queue and suspension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd

from planner.trace import Trace

QUANTILES = {"p50_seconds": 0.5, "p90_seconds": 0.9, "p95_seconds": 0.95, "p99_seconds": 0.99}


def by(
    trace: Trace,
    keys: Sequence[str] = ("lane",),
    *,
    since_seconds: int = 0,
    until_seconds: int | None = None,
    which: Literal["first", "total"] = "first",
) -> pd.DataFrame:
    """Return the waits of the jobs submitted in a time, one row for each group of `keys`.

    `keys` are columns of `trace.jobs` (lane, project, tenant, pool ...); no key gives one row over
    all. `which` is "first" (to the first start) or "total". Columns: keys, `jobs`, `waiting`,
    `p50_seconds` to `p99_seconds`, `mean_seconds`, `longest_seconds`, `at_least`.

    A job that still waits counts with its age so far; where there is one, the figures can only
    grow, and `at_least` says so. Jobs that can never run have no wait and are left out. A
    percentile is the wait of a real job: the shortest that this share did not exceed.
    """
    waits = each(trace, which=which)
    rows = waits["submit_seconds"] >= since_seconds
    if until_seconds is not None:
        rows &= waits["submit_seconds"] < until_seconds
    waits = waits[rows]
    names = [*keys, "jobs", "waiting", *QUANTILES, "mean_seconds", "longest_seconds", "at_least"]
    groups = waits.groupby(list(keys), dropna=False, sort=True) if keys else [((), waits)]
    records = [
        (*group, *_row(rows["seconds"].to_numpy(), int(rows["still"].sum())))
        for group, rows in groups
        if len(rows)
    ]
    return pd.DataFrame.from_records(records, columns=names)


def each(trace: Trace, *, which: Literal["first", "total"] = "first") -> pd.DataFrame:
    """Return `trace.jobs` with the wait so far in `seconds`, and whether it goes on in `still`."""
    jobs = trace.jobs[trace.jobs["state"] != "unschedulable"].copy()
    if which == "first":
        age = trace.end_seconds - jobs["submit_seconds"]
        jobs["still"] = jobs["first_start_seconds"].isna()
        jobs["seconds"] = jobs["wait_seconds"].fillna(age).astype("int64")
    elif which == "total":
        jobs["still"] = jobs["state"].isin(["waiting", "suspended"])
        jobs["seconds"] = jobs["total_wait_seconds"].astype("int64")
    else:
        raise ValueError(f"which={which!r}: expected 'first' or 'total'")
    return jobs


def percentile(seconds: np.ndarray[tuple[int], np.dtype[np.int64]], share: float) -> int:
    """Return the shortest wait that this share of the jobs did not exceed."""
    return int(np.quantile(seconds, share, method="inverted_cdf"))


def _row(
    seconds: np.ndarray[tuple[int], np.dtype[np.int64]], still: int
) -> tuple[int | float | bool, ...]:
    return (
        len(seconds),
        still,
        *(percentile(seconds, share) for share in QUANTILES.values()),
        float(seconds.mean()),
        int(seconds.max()),
        still > 0,
    )
