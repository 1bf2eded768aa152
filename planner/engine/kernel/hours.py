"""Seconds cut at full hours and added up by group: the series that dashboards draw."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

HOUR = 3600
MOST_HOURS = 1_000_000  # a century; beyond it nobody draws hours


class Stretches(NamedTuple):
    """Spans of time, each of a group, with so many GPUs; columns of equal length.

    Of a span only its first `most` seconds at work count. With an interval the work pauses: each
    `cycle` seconds hold `interval` at work, and then the writing of a checkpoint.
    """

    group: Any
    start: Any
    end: Any
    gpus: Any
    interval: Any
    cycle: Any
    most: Any


class Hours(NamedTuple):
    """GPU-seconds by group and hour (its first second), sorted so; hours without any are absent."""

    group: Any
    hour: Any
    gpu_seconds: Any


def plain(group: Any, start: Any, end: Any, gpus: Any) -> Stretches:
    """Return spans that count from beginning to end."""
    none = np.zeros(len(start), np.int64)
    return Stretches(group, start, end, gpus, none, none, end - start)


@numba.njit(cache=True)
def _worked(seconds: int, interval: int, cycle: int, most: int) -> int:
    """Return the seconds at work among the first `seconds` of a span."""
    if interval == 0 or cycle == interval:
        return min(seconds, most)
    cycles = seconds // cycle
    return min(cycles * interval + min(interval, seconds - cycles * cycle), most)


@numba.njit(cache=True)
def _add_up(
    order: Any, bounds: Any, rows: Any, sums: Any, steps: Any, group: Any, hour: Any, total: Any
) -> int:
    """Fill the last three, group after group; `sums` and `steps` have room for one group's hours.

    What lasts for whole hours is one step up and one down, however many hours it lasts.
    """
    n = 0
    for number in range(bounds.size - 1):
        low, high = bounds[number], bounds[number + 1]
        first, last = rows.start[order[low]] // HOUR, 0
        for k in range(low, high):
            i = order[k]
            first = min(first, rows.start[i] // HOUR)
            last = max(last, rows.end[i] // HOUR)
        for k in range(low, high):
            i = order[k]
            start, gpus, most = rows.start[i], rows.gpus[i], rows.most[i]
            interval, cycle = rows.interval[i], rows.cycle[i]
            if interval == 0 or cycle == interval:
                end = min(rows.end[i], start + most)
                a, b = start // HOUR, end // HOUR
                if a == b:
                    sums[a - first] += gpus * (end - start)
                    continue
                sums[a - first] += gpus * (HOUR - start % HOUR)
                sums[b - first] += gpus * (end % HOUR)
                steps[a + 1 - first] += gpus * HOUR
                steps[b - first] -= gpus * HOUR
                continue
            before = 0
            for h in range(start // HOUR, rows.end[i] // HOUR + 1):
                until = min(rows.end[i], (h + 1) * HOUR)
                after = _worked(until - start, interval, cycle, most)
                sums[h - first] += gpus * (after - before)
                before = after
        level = 0
        for h in range(last - first + 1):
            level += steps[h]
            if sums[h] + level > 0:
                group[n] = rows.group[order[low]]
                hour[n], total[n] = (first + h) * HOUR, sums[h] + level
                n += 1
            sums[h] = steps[h] = 0
    return n


def by_hour(stretches: Stretches) -> Hours:
    """Cut spans at full hours and add up the GPU-seconds of each group.

    Raises ValueError where the spans reach over more than `MOST_HOURS`.
    """
    rows = Stretches(*(np.ascontiguousarray(column, np.int64) for column in stretches))
    if not len(rows.start):
        return Hours(*(np.zeros(0, np.int64) for _ in Hours._fields))
    order = np.argsort(rows.group, kind="stable")
    lows = np.flatnonzero(np.diff(rows.group[order], prepend=rows.group[order[0]] - 1))
    bounds = np.append(lows, len(order))
    spans = (
        np.maximum.reduceat(rows.end[order], lows) // HOUR
        - np.minimum.reduceat(rows.start[order], lows) // HOUR
        + 1
    )
    longest = int(spans.max())
    if longest > MOST_HOURS:
        raise ValueError(
            f"the run lasts {longest:,} hours: expected at most {MOST_HOURS:,} for hourly figures"
        )
    room = int(min(spans.sum(), (rows.end // HOUR - rows.start // HOUR + 1).sum()))
    sums, steps = np.zeros(longest, np.int64), np.zeros(longest, np.int64)
    columns = [np.zeros(room, np.int64) for _ in Hours._fields]
    n = _add_up(order, bounds, rows, sums, steps, *columns)
    return Hours(*(column[:n] for column in columns))
