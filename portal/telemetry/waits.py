"""How long jobs wait for their first start; jobs still waiting count with their age so far.

Pure: works in a notebook on the frame of `selectors.jobs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import pandas as pd

QUANTILES = {"p50_seconds": 0.50, "p90_seconds": 0.90, "p95_seconds": 0.95}
COLUMNS = ["jobs", "waiting", *QUANTILES, "longest_seconds", "at_least"]


def first_start(frame: pd.DataFrame, *, as_of: datetime) -> pd.DataFrame:
    """The frame with wait_seconds and waiting, as the queue stood at an instant.

    A job that started later counts as waiting with its age at `as_of`; one that left the queue
    without a start counts with the time it endured. Jobs that can never run, and jobs submitted
    later, are left out: they do not wait.
    """
    instant = pd.Timestamp(as_of)
    kept = frame[(frame["submit_at"] <= instant) & (frame["state"] != "unschedulable")].copy()
    started = kept["first_start_at"].notna() & (kept["first_start_at"] <= instant)
    left = ~started & kept["end_at"].notna() & (kept["end_at"] <= instant)
    until = kept["first_start_at"].where(started, kept["end_at"].where(left, instant))
    until = pd.to_datetime(until, utc=True)
    kept["wait_seconds"] = (until - kept["submit_at"]).dt.total_seconds().clip(lower=0)
    kept["waiting"] = ~started & ~left
    return kept


def summary(frame: pd.DataFrame, *, by: Sequence[str], as_of: datetime) -> pd.DataFrame:
    """First-start waits by group: jobs, waiting, p50, p90, p95, longest (seconds), at_least.

    One row a group of `by` (one row in all when `by` is empty); `at_least` is true where jobs still
    wait: the figures can only grow. Quantiles are interpolated linearly.
    """
    keys = list(by)
    kept = first_start(frame, as_of=as_of)
    if kept.empty:
        return pd.DataFrame(columns=[*keys, *COLUMNS])
    if not keys:
        kept["_all"] = ""
    groups = kept.groupby(keys or ["_all"], sort=True, dropna=False)
    total = groups.agg(
        jobs=("wait_seconds", "size"),
        waiting=("waiting", "sum"),
        longest_seconds=("wait_seconds", "max"),
    )
    for name, q in QUANTILES.items():
        total[name] = groups["wait_seconds"].quantile(q)
    total["at_least"] = total["waiting"] > 0
    return total.reset_index()[[*keys, *COLUMNS]]
