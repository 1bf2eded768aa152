"""Goodput: how much of the time GPUs were held was useful work, and what took the rest."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from planner.trace import Trace

PARTS = ("useful", "lost", "checkpoint", "restart", "staging")
_OF_JOB = ("id", "project", "tenant", "lane", "gpus")


def attempts(trace: Trace) -> pd.DataFrame:
    """Return the attempts with project, tenant, lane and `held_gpu_seconds` of each."""
    jobs = trace.jobs[list(_OF_JOB)].rename(columns={"id": "job"})
    frame = trace.attempts.merge(jobs, on="job", how="left", validate="many_to_one")
    frame["held_gpu_seconds"] = sum(frame[f"{part}_gpu_seconds"] for part in PARTS)
    return frame


def by(trace: Trace, keys: Sequence[str] = ("lane",)) -> pd.DataFrame:
    """Return the GPU-seconds held, and what became of them, for each group of `keys`.

    `keys` are of project, tenant, lane, pool. Columns: keys, `held_gpu_seconds`, the five parts it
    is made of (useful, lost, checkpoint, restart, staging), the loss by the eviction that caused
    it (`lost_to_preemption_gpu_seconds`, `lost_to_reclaim_...`, `lost_to_outage_...`) and
    `goodput_ratio` (useful / held; null where nothing was held). An eviction that also destroys
    saved work of earlier attempts counts where it happened; the part `lost` counts where the work
    had been done. They have the same sum.
    """
    names = ["held_gpu_seconds", *(f"{part}_gpu_seconds" for part in PARTS)]
    frame = attempts(trace)
    keys = list(keys)
    if not keys:
        frame, keys = frame.assign(all="all"), ["all"]
    held = frame.groupby(keys, as_index=False, sort=True)[names].sum()
    tenants = trace.jobs.drop_duplicates("project").set_index("project")["tenant"]
    evictions = trace.evictions.rename(
        columns={"victim_project": "project", "victim_lane": "lane"}
    ).assign(all="all")
    evictions["tenant"] = evictions["project"].map(tenants)
    for ground in ("preemption", "reclaim", "outage"):
        column = f"lost_to_{ground}_gpu_seconds"
        rows = evictions[evictions["ground"] == ground]
        lost = rows.groupby(keys, as_index=False)[["lost_gpu_seconds"]].sum()
        lost = lost.rename(columns={"lost_gpu_seconds": column})
        held = held.merge(lost, on=keys, how="left")
        held[column] = held[column].fillna(0).astype("int64")
    ratio = held["useful_gpu_seconds"] / held["held_gpu_seconds"].where(
        held["held_gpu_seconds"] > 0
    )
    held["goodput_ratio"] = ratio.astype("float64")
    return held.drop(columns="all") if keys == ["all"] else held
