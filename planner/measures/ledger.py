"""Who displaced whom: the preemption ledger, and pairs that keep doing it."""

from __future__ import annotations

import pandas as pd

from planner.trace import Trace

_PAIR = ["preemptor_project", "preemptor_lane", "victim_project", "victim_lane", "ground"]


def pairs(trace: Trace) -> pd.DataFrame:
    """Return one row for each preemptor, victim and ground, the costliest first.

    Columns: `preemptor_project`, `preemptor_lane`, `victim_project`, `victim_lane`, `ground`,
    `evictions`, `lost_gpu_seconds`. An outage has no preemptor: null.
    """
    grouped = trace.evictions.groupby(_PAIR, dropna=False, as_index=False)
    frame = grouped.agg(
        evictions=("lost_gpu_seconds", "size"), lost_gpu_seconds=("lost_gpu_seconds", "sum")
    )
    return frame.sort_values(
        ["lost_gpu_seconds", "evictions"], ascending=False, kind="stable", ignore_index=True
    )


def loops(trace: Trace, *, times: int = 3, within_seconds: int = 3600) -> pd.DataFrame:
    """Return each run of evictions in which one pair met `times` times within a time.

    Columns: those of a pair, `from_seconds`, `to_seconds`, `evictions`. Runs that overlap are one.
    """
    records: list[tuple[object, ...]] = []
    displaced = trace.evictions[trace.evictions["ground"] != "outage"]
    for pair, rows in displaced.groupby(_PAIR):
        seconds = sorted(int(second) for second in rows["at_seconds"])
        spans: list[list[int]] = []  # first and last eviction, by number
        for last in range(times - 1, len(seconds)):
            first = last - times + 1
            if seconds[last] - seconds[first] > within_seconds:
                continue
            if spans and first <= spans[-1][1]:
                spans[-1][1] = last
            else:
                spans.append([first, last])
        records += [
            (*pair, seconds[first], seconds[last], last - first + 1) for first, last in spans
        ]
    columns = [*_PAIR, "from_seconds", "to_seconds", "evictions"]
    return pd.DataFrame.from_records(records, columns=columns)
