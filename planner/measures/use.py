"""What was allocated, what of it was useful, and what waited, hour by hour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from planner.engine.columns import Columns
from planner.engine.kernel.hours import Stretches, by_hour, plain
from planner.trace import PARTS, Numbers, Trace

_USEFUL = PARTS.index("useful")


def hourly(trace: Trace, by: Sequence[str] = ("pool", "project", "lane")) -> pd.DataFrame:
    """Return the GPU-seconds allocated, useful and waited for in each hour.

    `by`: any of `pool`, `project`, `lane`. Columns: `hour_seconds` (the hour's first second),
    those of `by`, `allocated_gpu_seconds`, `useful_gpu_seconds` (work that was kept, in the hour
    it was done), `waiting_gpu_seconds` (asked for by jobs that waited, back-off and suspension
    included; by pool: a job that may run in several waits at each of them, so pools do not add
    up). All exact. Hours in which nothing was held or waited for have no row. ValueError beyond
    a million hours.
    """
    groups = _Groups(trace, by)
    found = {
        "allocated_gpu_seconds": by_hour(_held(trace, groups)),
        "useful_gpu_seconds": by_hour(_useful(trace, groups)),
        "waiting_gpu_seconds": by_hour(_waiting(trace, groups)),
    }
    keys = pd.concat(
        [pd.DataFrame({"hour": rows.hour, "group": rows.group}) for rows in found.values()]
    )
    table = keys.drop_duplicates().sort_values(["hour", "group"], ignore_index=True)
    index = pd.MultiIndex.from_frame(table)
    result = pd.DataFrame(
        {"hour_seconds": table["hour"].to_numpy(), **groups.names(table["group"])}
    )
    for name, rows in found.items():
        at = index.get_indexer(pd.MultiIndex.from_arrays([rows.hour, rows.group]))
        column = np.zeros(len(table), np.int64)
        column[at] = rows.gpu_seconds
        result[name] = column
    return result


class _Groups:
    """Numbers for the combinations of pool, project and lane that are told apart."""

    def __init__(self, trace: Trace, by: Sequence[str]) -> None:
        table, scenario = trace.scenario.table, trace.scenario
        self.by_pool = "pool" in by
        known: dict[str, tuple[Sequence[str], Numbers]] = {
            "pool": ([pool.name for pool in scenario.pools], np.zeros(0, np.int64)),
            "project": (table.project_names, table.project),
            "lane": (table.lane_names, table.lane),
        }
        if unknown := set(by) - set(known):
            raise ValueError(f"by: got {', '.join(sorted(unknown))}, expected some of {[*known]}")
        self._parts = {name: known[name] for name in by}

    def of(self, job: Numbers, pool: Numbers) -> Numbers:
        """Return the group of each job in a pool; without pools among the parts, in any."""
        group = np.zeros(len(job), np.int64)
        for name, (words, codes) in self._parts.items():
            group = group * len(words) + (pool if name == "pool" else codes[job])
        return group

    def names(self, groups: pd.Series[Any]) -> dict[str, pd.Series[Any]]:
        """Return the columns that name the groups."""
        rest, columns = groups.to_numpy(), {}
        for name, (words, _) in reversed(self._parts.items()):
            columns[name] = pd.Series(np.array(words, dtype=object)[rest % len(words)], dtype="str")
            rest = rest // len(words)
        return dict(reversed(columns.items()))


def _ends(trace: Trace) -> Numbers:
    end = trace.records.attempts.end
    return np.where(end < 0, trace.end_seconds, end)


def _held(trace: Trace, groups: _Groups) -> Stretches:
    rows = trace.records.attempts
    gpus = trace.scenario.table.gpus[rows.job]
    return plain(groups.of(rows.job, rows.pool), rows.start, _ends(trace), gpus)


def _useful(trace: Trace, groups: _Groups) -> Stretches:
    """Return the work that was kept: after staging and restart, between the checkpoints."""
    table, rows = trace.scenario.table, trace.records.attempts
    gpus = table.gpus[rows.job]
    worked = rows.split[:, _USEFUL] > 0
    job, pool = rows.job[worked], rows.pool[worked]
    interval = table.checkpoint_interval_seconds[job]
    start = (rows.start + rows.staging + rows.restart)[worked]
    return Stretches(
        group=groups.of(job, pool),
        start=start,
        end=_ends(trace)[worked],
        gpus=gpus[worked],
        interval=interval,
        cycle=interval + _write_seconds(trace, job, pool),
        most=(rows.split[:, _USEFUL] // gpus)[worked],
    )


def _write_seconds(trace: Trace, job: Numbers, pool: Numbers) -> Numbers:
    """Return how long a checkpoint of each job takes from its pool."""
    table, columns = trace.scenario.table, Columns(trace.scenario)
    pools = len(trace.scenario.pools)
    pairs, where = np.unique(table.kind[job].astype(np.int64) * pools + pool, return_inverse=True)
    example = np.zeros(len(pairs), np.int64)
    example[where] = job
    seconds = [
        columns.writing(table[one], pair % pools)
        for one, pair in zip(example.tolist(), pairs.tolist(), strict=True)
    ]
    return np.array(seconds, np.int64)[where] if len(job) else np.zeros(0, np.int64)


def _waiting(trace: Trace, groups: _Groups) -> Stretches:
    rows = trace.records.spells()
    job, start, end = rows.job, rows.start, rows.end
    if not groups.by_pool:
        return plain(groups.of(job, job), start, end, trace.scenario.table.gpus[job])
    bounds, pools = _may_run_in(trace)
    width = np.diff(bounds)[job]
    spell = np.repeat(np.arange(len(job)), width)
    offset = np.arange(len(spell)) - np.repeat(np.cumsum(width) - width, width)
    job = job[spell]
    gpus = trace.scenario.table.gpus[job]
    pool = pools[bounds[job] + offset]
    return plain(groups.of(job, pool), start[spell], end[spell], gpus)


def _may_run_in(trace: Trace) -> tuple[Numbers, Numbers]:
    """Return the pools that may ever hold each job: where its list begins, and all lists."""
    table, columns = trace.scenario.table, Columns(trace.scenario)
    accounts = columns.accounts()
    sizes, number = pd.factorize(table.gpus)
    key = table.project.astype(np.int64) * len(table.lane_names) + table.lane
    key = (key * len(table.kinds) + table.kind) * max(1, len(number)) + sizes
    codes, uniques = pd.factorize(key)
    example = np.zeros(len(uniques), np.int64)
    example[codes] = np.arange(len(codes))
    lists = [columns.eligible(table[one], accounts)[0] for one in example.tolist()]
    widths = np.array([len(pools) for pools in lists], np.int64)
    flat = np.array([pool for pools in lists for pool in pools], np.int64)
    firsts = np.cumsum(widths) - widths
    width = widths[codes] if len(codes) else np.zeros(0, np.int64)
    bounds = np.concatenate(([0], np.cumsum(width)))
    at = np.repeat(firsts[codes] - bounds[:-1], width) + np.arange(int(bounds[-1]))
    return bounds, flat[at]
