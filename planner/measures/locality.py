"""Whether work ran beside its data, and what was moved where it did not."""

from __future__ import annotations

import pandas as pd

from planner.measures import goodput
from planner.trace import Trace


def _placed(trace: Trace) -> pd.DataFrame:
    """Return the attempts of jobs that have data, with both regions and what they brought over."""
    scenario = trace.scenario
    home = {job.id: job.data_region for job in scenario.jobs}
    size = {job.id: float(job.data_gb) for job in scenario.jobs}
    region_of_domain = {domain.name: domain.region for domain in scenario.domains}
    region_of_pool = {pool.name: region_of_domain[pool.domain] for pool in scenario.pools}
    frame = goodput.attempts(trace)
    frame["data_region"] = frame["job"].map(home).astype("str")
    frame = frame[frame["job"].map(lambda job: home[job] is not None).astype(bool)].copy()
    frame["region"] = frame["pool"].map(region_of_pool)
    planned = frame["staging_seconds"] * frame["gpus"]
    arrived = (frame["staging_seconds"] > 0) & (frame["staging_gpu_seconds"] == planned)
    frame["staged_gb"] = frame["job"].map(size).where(arrived, 0.0)
    frame["staging_spent_seconds"] = frame["staging_gpu_seconds"] // frame["gpus"]
    return frame


def by_project(trace: Trace) -> pd.DataFrame:
    """Return how much of each project's work ran in the region of its data.

    Columns: `project`, `held_gpu_seconds` (of jobs that have a data region),
    `beside_data_gpu_seconds`, `beside_data_ratio`, `staged_gb`, `staging_seconds` (of transfers,
    finished or not), `staging_gpu_seconds`. Projects without such jobs have no row.
    """
    frame = _placed(trace)
    beside = frame["region"] == frame["data_region"]
    frame["beside_data_gpu_seconds"] = frame["held_gpu_seconds"].where(beside, 0)
    frame["staging_seconds"] = frame["staging_spent_seconds"]
    names = ["held_gpu_seconds", "beside_data_gpu_seconds"]
    sums = ["staged_gb", "staging_seconds", "staging_gpu_seconds"]
    result = frame.groupby("project", as_index=False)[names + sums].sum()
    held = result["held_gpu_seconds"].where(result["held_gpu_seconds"] > 0)
    ratio = (result["beside_data_gpu_seconds"] / held).astype("float64")
    result.insert(3, "beside_data_ratio", ratio)
    return result


def by_link(trace: Trace) -> pd.DataFrame:
    """Return what was moved from where to where, by project.

    Columns: `from_region`, `to_region`, `project`, `staged_gb`, `staging_seconds`.
    """
    frame = _placed(trace).rename(columns={"data_region": "from_region", "region": "to_region"})
    frame = frame[frame["staging_seconds"] > 0]
    frame = frame.assign(staging_seconds=frame["staging_spent_seconds"])
    keys = ["from_region", "to_region", "project"]
    return frame.groupby(keys, as_index=False)[["staged_gb", "staging_seconds"]].sum()
