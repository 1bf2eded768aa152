"""Checkpoint: what an interruption costs. Everything is whole seconds, rounded up exactly."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple


def ceil_ratio(numerator: Decimal, denominator: Decimal, times: int = 1) -> int:
    """Divide exactly, multiply, and round up to a whole number."""
    above, below = numerator.as_integer_ratio()
    num, den = denominator.as_integer_ratio()
    return -(-above * den * times // (below * num))


def staging_seconds(data_gb: Decimal, gbps: Decimal) -> int:
    """Return how long the data take over the link."""
    return ceil_ratio(data_gb, gbps, times=8)


def write_seconds(checkpoint_gb: Decimal, write_gb_per_second: Decimal | None) -> int:
    """Return how long one checkpoint takes to write (None: the pool has no storage, 0 s)."""
    if write_gb_per_second is None or not checkpoint_gb:
        return 0
    return ceil_ratio(checkpoint_gb, write_gb_per_second)


def writes_in(work_seconds: int, interval_seconds: int) -> int:
    """Count the checkpoints of an attempt that finishes; the last piece of work writes none."""
    if interval_seconds <= 0:
        return 0
    return max(0, -(-work_seconds // interval_seconds) - 1)


class Spent(NamedTuple):
    """How the seconds of an attempt were spent, up to some moment of it."""

    staging: int
    restart: int
    writing: int
    progress: int  # useful work done in this attempt
    saved: int  # the part of it that the last checkpoint holds


def spent(elapsed: int, *, staging: int, restart: int, interval: int, write: int) -> Spent:
    """Split the first `elapsed` seconds of an attempt that has not finished."""
    staged = min(elapsed, staging)
    restarted = min(elapsed - staged, restart)
    at_work = elapsed - staged - restarted
    if interval <= 0:
        return Spent(staged, restarted, 0, at_work, 0)
    cycles, into_cycle = divmod(at_work, interval + write)
    saved = cycles * interval
    progress = saved + min(interval, into_cycle)
    return Spent(staged, restarted, at_work - progress, progress, saved)


def back_off_seconds(first: int, limit: int | None, evictions: int) -> int:
    """Return the wait before the n-th re-queue: it doubles each time, up to the limit."""
    # Beyond 2^40 s no run is long enough to tell the difference.
    wait = first << min(evictions - 1, 40)
    return wait if limit is None else min(limit, wait)
