"""Whether projects got what they are entitled to."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from planner.measures import goodput
from planner.trace import Trace


def delivered(trace: Trace) -> pd.DataFrame:
    """Return the GPU-seconds each project was given beside those it was entitled to.

    Entitled is the nominal quota over the whole run; where a pool's nominal quotas add up to more
    than it has, each counts for its part of the pool. Outages are not taken off. Columns:
    `project`, `tenant`, `delivered_gpu_seconds` (held), `entitled_gpu_seconds`,
    `delivered_ratio` (null where nothing is entitled). One row per project, in file order.
    """
    scenario = trace.scenario
    promised = {pool.name: 0 for pool in scenario.pools}
    for quota in scenario.quotas:
        promised[quota.pool] += quota.nominal
    entitled = {project.name: 0.0 for project in scenario.projects}
    pools = {pool.name: pool for pool in scenario.pools}
    for quota in scenario.quotas:
        part = min(1.0, pools[quota.pool].gpus / max(1, promised[quota.pool]))
        entitled[quota.project] += quota.nominal * part * trace.end_seconds
    held = goodput.attempts(trace).groupby("project")["held_gpu_seconds"].sum()
    frame = pd.DataFrame(
        {
            "project": pd.Series([p.name for p in scenario.projects], dtype="str"),
            "tenant": pd.Series([p.tenant for p in scenario.projects], dtype="str"),
            "delivered_gpu_seconds": pd.Series(
                [int(held.get(p.name, 0)) for p in scenario.projects], dtype="int64"
            ),
            "entitled_gpu_seconds": pd.Series(
                [entitled[p.name] for p in scenario.projects], dtype="float64"
            ),
        }
    )
    due = frame["entitled_gpu_seconds"].where(frame["entitled_gpu_seconds"] > 0)
    frame["delivered_ratio"] = frame["delivered_gpu_seconds"] / due
    return frame


def jain(values: Iterable[float | None]) -> float | None:
    """Return Jain's index: 1 where all are equal, 1/n where one has everything.

    Absent values are left out; None where there is nothing to compare, or nobody got anything.
    Source: Jain, Chiu and Hawe, DEC-TR-301, 1984.
    """
    known = [float(value) for value in values if value is not None and value == value]
    squares = sum(value * value for value in known)
    if not squares:
        return None
    return sum(known) ** 2 / (len(known) * squares)
