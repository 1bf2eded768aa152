"""Quota and dominant shares, in whole numbers: the algebra of `planner.policy`, on rows."""

from __future__ import annotations

from planner.engine.kernel.layout import (
    BORROWING,
    CAPACITY,
    FITS,
    FRAGMENTED,
    LANE_LIMIT,
    OUT,
    QUOTA,
    STAMP,
    State,
    jit,
)
from planner.engine.kernel.nodes import nodes_fit


@jit
def available(s: State, r: int) -> int:
    """Return what is left for a project: its own guarantee and the cohort's idle quota."""
    row = s.rows[r]
    cohort = s.cohorts[row.cohort]
    own = row.guaranteed - row.usage
    return (own if own > 0 else 0) + cohort.capacity - cohort.used


@jit
def quota_fits(s: State, r: int, gpus: int) -> bool:
    """Say whether quota lets the project hold `gpus` more in the pool."""
    row = s.rows[r]
    return row.usage + gpus <= row.ceiling and gpus <= available(s, r)


@jit
def book(s: State, r: int, gpus: int) -> None:
    """Book `gpus` to a project in a pool; a negative number gives them back."""
    row = s.rows[r]
    before = row.usage
    after = before + gpus
    row.usage = after
    guaranteed = row.guaranteed
    above = after - guaranteed if after > guaranteed else 0
    above -= before - guaranteed if before > guaranteed else 0
    s.cohorts[row.cohort].used += above
    if after > row.nominal:
        if before <= row.nominal:
            s.pools[row.pool].borrowers += 1
    elif before > row.nominal:
        s.pools[row.pool].borrowers -= 1


@jit
def first_failing(s: State, p: int, r: int, q: int, gpus: int) -> int:
    """Return the first check that a gang fails in a pool; q: its queue, or -1 without a limit."""
    pool = s.pools[p]
    if pool.out > 0:
        return OUT
    if q >= 0 and s.queues[q].use + gpus > s.queues[q].limit:
        return LANE_LIMIT
    row = s.rows[r]
    if row.usage + gpus > row.ceiling:
        return BORROWING
    if gpus > available(s, r):
        return QUOTA
    if gpus > pool.free:
        return CAPACITY
    return FITS if nodes_fit(s, p, gpus) else FRAGMENTED


@jit
def stage(s: State, i: int) -> int:
    """Return the first check that a shape fails in a pool."""
    sp = s.sps[i]
    shape = s.shapes[sp.shape_id]
    return first_failing(s, sp.pool, sp.row, shape.queue, shape.gpus)


@jit
def kin_fit(s: State, f: int) -> bool:
    """Say whether kin fit in one of their pools; asked once between two changes of anything."""
    kin = s.kins[f]
    if kin.asked != s.st[STAMP]:
        kin.asked, kin.fits = s.st[STAMP], 0
        for i in range(kin.kp_lo, kin.kp_hi):
            kp = s.kps[i]
            if first_failing(s, kp.pool, kp.row, kp.queue, kin.gpus) == FITS:
                kin.fits = 1
                break
    return kin.fits != 0


@jit
def refresh_share(s: State, q: int) -> None:
    """Bring a project's dominant share up to date: a fraction; a denominator of 0 is infinity."""
    project = s.projects[q]
    num, den = 0, 1
    for r in range(project.row_lo, project.row_hi):
        row = s.rows[r]
        borrowed = row.usage - row.nominal
        if borrowed > 0:
            if row.den == 0:
                num, den = 1, 0
                break
            if borrowed * row.num * den > num * row.den:
                num, den = borrowed * row.num, row.den
    project.share_num, project.share_den, project.stale = num, den, 0


@jit
def compare_shares(s: State, a: int, b: int) -> int:
    """Say which project's dominant share is the smaller: -1 the first, 1 the second, 0 neither."""
    if s.projects[a].stale:
        refresh_share(s, a)
    if s.projects[b].stale:
        refresh_share(s, b)
    left = s.projects[a].share_num * s.projects[b].share_den
    right = s.projects[b].share_num * s.projects[a].share_den
    return -1 if left < right else 1 if left > right else 0
