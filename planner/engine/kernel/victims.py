"""Victims: who may be displaced for a job in a pool, and which of them have to go (section 4)."""

from __future__ import annotations

from planner.engine.kernel.courses import displace, would_lose
from planner.engine.kernel.layout import (
    BY_LOSS,
    NEVER,
    PREEMPTION,
    RECLAIM,
    RECLAIM_ANY,
    RECLAIM_NEVER,
    RECLAIMS,
    State,
    jit,
)
from planner.engine.kernel.nodes import give, nodes_fit, retake
from planner.engine.kernel.quota import book, quota_fits


@jit
def worth_a_look(s: State, i: int) -> bool:
    """Rule out, by counting alone, a pool in which nobody would be found for the shape."""
    sp = s.sps[i]
    shape = s.shapes[sp.shape_id]
    row, pool = s.rows[sp.row], s.pools[sp.pool]
    within = row.usage + shape.gpus <= row.nominal
    if within and s.rule[RECLAIMS] != RECLAIM_NEVER and pool.borrowers > 0:
        return True
    lanes = s.lanes.size
    reachable = 0
    for lane in range(lanes):
        if s.preempts[shape.lane, lane]:
            reachable += s.pls[sp.pool * lanes + lane].use
    if not within and reachable > row.usage:
        reachable = row.usage
    return reachable > 0 and pool.free + reachable >= shape.gpus


@jit
def _goes_before(s: State, a: int, b: int) -> bool:
    left, right = s.running_candidates[a], s.running_candidates[b]
    if left.borrower_last != right.borrower_last:
        return left.borrower_last < right.borrower_last
    if left.rank != right.rank:
        return left.rank < right.rank
    if left.choice != right.choice:
        return left.choice < right.choice
    return left.job > right.job  # the last in the file goes first


@jit
def _sift(s: State, at: int, n: int) -> None:
    """Restore the heap of candidates (their numbers, in `chosen`) from one place down."""
    mine = s.chosen[at]
    below = 2 * at + 1
    while below < n:
        if below + 1 < n and _goes_before(s, s.chosen[below + 1], s.chosen[below]):
            below += 1
        if not _goes_before(s, s.chosen[below], mine):
            break
        s.chosen[at] = s.chosen[below]
        at = below
        below = 2 * at + 1
    s.chosen[at] = mine


@jit
def _collect(s: State, i: int, now: int) -> tuple[int, int]:
    """Find the candidates; return their number, and the second from which there may be more."""
    sp = s.sps[i]
    shape = s.shapes[sp.shape_id]
    row = s.rows[sp.row]
    within = row.usage + shape.gpus <= row.nominal
    rank, reclaim = s.lanes[shape.lane].rank, s.rule[RECLAIMS]
    n, ask_again = 0, NEVER
    job = s.pools[sp.pool].running
    while job >= 0:
        j = s.jobs[job]
        theirs = s.shapes[j.shape_id]
        their_lane = s.lanes[theirs.lane]
        their_row = s.rows[s.sps[j.sp].row]
        same = theirs.project == shape.project
        borrows = their_row.usage > their_row.nominal
        ground = -1
        if s.preempts[shape.lane, theirs.lane] and (same or within):
            ground = PREEMPTION
        elif (
            within
            and not same
            and reclaim != RECLAIM_NEVER
            and their_row.cohort == row.cohort
            and borrows
            and (reclaim == RECLAIM_ANY or their_lane.rank < rank)
        ):
            ground = RECLAIM
        if ground >= 0:
            if j.since + their_lane.protect > now:
                ask_again = min(ask_again, j.since + their_lane.protect)
            else:
                candidate = s.running_candidates[n]
                candidate.borrower_last = 0 if borrows else 1
                candidate.rank = their_lane.rank
                candidate.choice = would_lose(s, job, now) if s.rule[BY_LOSS] else -j.since
                candidate.job = job
                candidate.gpus = theirs.gpus
                candidate.row = s.sps[j.sp].row
                candidate.ground = ground
                n += 1
        job = j.next
    return n, ask_again


@jit
def _fits(s: State, i: int) -> bool:
    sp = s.sps[i]
    gpus = s.shapes[sp.shape_id].gpus
    if not quota_fits(s, sp.row, gpus) or gpus > s.pools[sp.pool].free:
        return False
    return nodes_fit(s, sp.pool, gpus)


@jit
def make_room(s: State, job: int, i: int, now: int) -> bool:
    """Evict whoever has to go for the job to fit in the pool; nobody, when all would not do."""
    sp = s.sps[i]
    p = sp.pool
    n, ask_again = _collect(s, i, now)
    for k in range(n):
        s.chosen[k] = k
    for k in range(n // 2 - 1, -1, -1):
        _sift(s, k, n)
    # 1. Take them one by one, in order, until the job fits. Those taken gather behind the heap.
    left, taken, left_out, fits = n, 0, False, False
    while left > 0 and not fits:
        first = s.chosen[0]
        left -= 1
        s.chosen[0] = s.chosen[left]
        _sift(s, 0, left)
        candidate = s.running_candidates[first]
        row = s.rows[candidate.row]
        if candidate.ground == RECLAIM and row.usage <= row.nominal:
            left_out = True
            continue
        book(s, candidate.row, -candidate.gpus)
        give(s, p, candidate.job, candidate.gpus)
        taken += 1
        s.chosen[n - taken] = first
        fits = _fits(s, i)
    # 2. From the last but one back to the first, spare each one that need not go after all.
    for k in range(n - taken + 1, n):
        if not fits:
            break
        candidate = s.running_candidates[s.chosen[k]]
        book(s, candidate.row, candidate.gpus)
        retake(s, p, candidate.job, candidate.gpus)
        if _fits(s, i):
            s.chosen[k] = -1
        else:
            book(s, candidate.row, -candidate.gpus)
            give(s, p, candidate.job, candidate.gpus)
    # 3. It was a trial: put everybody back before anybody is evicted.
    for k in range(n - taken, n):
        if s.chosen[k] >= 0:
            candidate = s.running_candidates[s.chosen[k]]
            book(s, candidate.row, candidate.gpus)
            retake(s, p, candidate.job, candidate.gpus)
    if not fits:
        # The order by loss changes as the candidates work on, and with it who is left out.
        sp.ask_from = now + 1 if left_out and s.rule[BY_LOSS] else ask_again
        sp.version = s.pools[p].version
        return False
    for k in range(n - 1, n - taken - 1, -1):
        if s.chosen[k] >= 0:
            candidate = s.running_candidates[s.chosen[k]]
            displace(s, candidate.job, now, candidate.ground, job)
    return True
