"""What was allocated, what of it was useful, and what waited, hour by hour."""

from __future__ import annotations

import numpy as np
import pandas as pd

from planner.measures import goodput
from planner.trace import Trace

HOUR = 3600


def _by_hour(start: pd.Series[int], end: pd.Series[int]) -> tuple[pd.Index[int], pd.DataFrame]:
    """Cut spans of seconds at full hours; return whose span each piece is, the hour, its length."""
    first = start.to_numpy(dtype="int64")
    last = end.to_numpy(dtype="int64")
    pieces = np.where(last > first, (last - 1) // HOUR - first // HOUR + 1, 0)
    owner = np.repeat(np.arange(len(first)), pieces)
    offset = np.arange(len(owner)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    hour = (first[owner] // HOUR + offset) * HOUR
    seconds = np.minimum(last[owner], hour + HOUR) - np.maximum(first[owner], hour)
    return pd.Index(owner), pd.DataFrame({"hour_seconds": hour, "seconds": seconds})


def hourly(trace: Trace) -> pd.DataFrame:
    """Return the GPU-seconds allocated and useful in each hour, by pool, project and lane.

    Columns: `hour_seconds` (the hour's first second), `pool`, `project`, `lane`,
    `allocated_gpu_seconds` (exact), `useful_gpu_seconds` (an attempt's useful work, spread evenly
    over the time after its staging and restart). Hours in which nothing was held have no row.
    """
    keys = ["hour_seconds", "pool", "project", "lane"]
    sums = ["allocated_gpu_seconds", "useful_gpu_seconds"]
    frame = goodput.attempts(trace)
    start = frame["start_seconds"]
    end = frame["end_seconds"].fillna(trace.end_seconds).astype("int64")
    owner, held = _by_hour(start, end)
    of = frame.iloc[owner].reset_index(drop=True)
    held = held.assign(**{name: of[name] for name in keys[1:]})
    held["allocated_gpu_seconds"] = held["seconds"] * of["gpus"]

    before_work = frame["staging_gpu_seconds"] + frame["restart_gpu_seconds"]
    at_work = start + before_work // frame["gpus"]
    owner, worked = _by_hour(at_work, end)
    of = frame.iloc[owner].reset_index(drop=True)
    length = (end - at_work).iloc[owner].reset_index(drop=True)
    worked = worked.assign(**{name: of[name] for name in keys[1:]})
    worked["useful_gpu_seconds"] = of["useful_gpu_seconds"] * worked["seconds"] / length

    both = pd.concat([held, worked], ignore_index=True)
    result = both.groupby(keys, as_index=False)[sums].sum()
    return result.astype({"allocated_gpu_seconds": "int64", "useful_gpu_seconds": "float64"})


def waiting_hourly(trace: Trace) -> pd.DataFrame:
    """Return the GPU-seconds that jobs asked for and waited for in each hour.

    Columns: `hour_seconds`, `lane`, `project`, `waiting_gpu_seconds` (exact; back-off and
    suspension included). Hours in which nobody waited have no row.
    """
    jobs = trace.jobs[["id", "lane", "project", "gpus"]].rename(columns={"id": "job"})
    frame = trace.spells.merge(jobs, on="job", how="left", validate="many_to_one")
    owner, pieces = _by_hour(frame["start_seconds"], frame["end_seconds"])
    of = frame.iloc[owner].reset_index(drop=True)
    pieces = pieces.assign(lane=of["lane"], project=of["project"])
    pieces["waiting_gpu_seconds"] = (pieces["seconds"] * of["gpus"]).astype("int64")
    keys = ["hour_seconds", "lane", "project"]
    return pieces.groupby(keys, as_index=False)[["waiting_gpu_seconds"]].sum()
