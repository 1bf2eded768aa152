"""EASY backfill: the first job that lacks GPUs in a pool gets a reservation there (section 4).

Jobs of one shape are refused alike by all but a reservation: that depends on their own limits.
So a shape's jobs are looked at one by one here, where and only where a reservation holds them.
"""

from __future__ import annotations

from planner.engine.kernel.courses import start
from planner.engine.kernel.layout import (
    CAPACITY,
    FITS,
    LISTED,
    NEVER,
    PLACEMENT,
    State,
    jit,
)
from planner.engine.kernel.passes import hopeful, in_placement_order, may_evict, place_of
from planner.engine.kernel.queues import NOBODY
from planner.engine.kernel.quota import kin_fit, stage
from planner.engine.kernel.victims import make_room


@jit
def _limit_left(s: State, job: int) -> int:
    left = s.limit[job] - s.jobs[job].saved
    return left if left > 0 else 0


@jit
def _hold(s: State, lane_place: int) -> None:
    """Find, for each pool, the first job in line that lacks GPUs there, down to this lane."""
    for p in range(s.pools.size):
        s.pools[p].hold_lane, s.pools[p].reserved = -1, 0
    for place in range(lane_place + 1):
        lane = s.lanes[s.lane_order[place]]
        for k in range(lane.queue_lo, lane.queue_lo + lane.n):
            queue = s.queues[s.lane_queues[k]]
            for m in range(queue.active_lo, queue.active_lo + queue.n_active):
                shape = s.shapes[s.active_shapes[m]]
                turn = queue.first if queue.line else s.turn[shape.first]
                for i in range(shape.sp_lo, shape.sp_hi):
                    pool = s.pools[s.sps[i].pool]
                    if 0 <= pool.hold_lane < place or shape.gpus <= pool.free:
                        continue
                    if pool.hold_lane == place and (
                        pool.hold_first < queue.first
                        or (pool.hold_first == queue.first and pool.hold_turn < turn)
                    ):
                        continue
                    if stage(s, i) == CAPACITY:
                        pool.hold_lane, pool.hold_first, pool.hold_turn = place, queue.first, turn
                        pool.hold_gpus = shape.gpus


@jit
def _sift(s: State, at: int, n: int) -> None:
    """Restore the heap of expected ends (in `choice`) from one place down."""
    heap = s.running_candidates
    end, gpus = heap[at].choice, heap[at].gpus
    below = 2 * at + 1
    while below < n:
        if below + 1 < n and heap[below + 1].choice < heap[below].choice:
            below += 1
        if heap[below].choice >= end:
            break
        heap[at].choice, heap[at].gpus = heap[below].choice, heap[below].gpus
        at = below
        below = 2 * at + 1
    heap[at].choice, heap[at].gpus = end, gpus


@jit
def _reserve(s: State, p: int, now: int) -> None:
    """Find when the holder's GPUs will be free, and how many will be spare then."""
    pool = s.pools[p]
    pool.reserved = 1
    heap = s.running_candidates
    n = 0
    job = pool.running
    while job >= 0:
        j = s.jobs[job]
        heap[n].choice = max(now, j.since + _limit_left(s, job))
        heap[n].gpus = s.shapes[j.shape_id].gpus
        n += 1
        job = j.next
    for k in range(n // 2 - 1, -1, -1):
        _sift(s, k, n)
    free, at = pool.free, NEVER
    while n > 0 and (free < pool.hold_gpus or heap[0].choice == at):
        at = heap[0].choice
        free += heap[0].gpus
        n -= 1
        heap[0].choice, heap[0].gpus = heap[n].choice, heap[n].gpus
        _sift(s, 0, n)
    pool.reserved_at, pool.spare = at, free - pool.hold_gpus


@jit
def _may_start(s: State, job: int, i: int, place: int, now: int) -> bool:
    """Say whether the job fits in the pool without delaying the one that holds it."""
    if stage(s, i) != FITS:
        return False
    sp = s.sps[i]
    pool, shape = s.pools[sp.pool], s.shapes[sp.shape_id]
    if pool.hold_lane < 0:
        return True
    queue = s.queues[shape.queue]
    if pool.hold_lane == place:
        if queue.first < pool.hold_first:
            return True
        if queue.first == pool.hold_first and s.turn[job] < pool.hold_turn:
            return True
    if not pool.reserved:
        _reserve(s, sp.pool, now)
    return shape.gpus <= pool.spare or now + _limit_left(s, job) <= pool.reserved_at


@jit
def _next_in_shape(s: State, g: int, place: int, now: int) -> int:
    """Return the first job of a shape that may be admitted; -1: none."""
    shape = s.shapes[g]
    queue = s.queues[shape.queue]
    head = queue.line_first if queue.line else shape.first
    if s.lanes[shape.lane].rights:
        for i in range(shape.sp_lo, shape.sp_hi):
            if may_evict(s, i, now):
                return head
    if not kin_fit(s, shape.kin):
        return -1
    job = head
    while job >= 0:
        for i in range(shape.sp_lo, shape.sp_hi):
            if _may_start(s, job, i, place, now):
                return job
        job = -1 if queue.strict else s.jobs[job].next
    return -1


@jit
def _admit(s: State, job: int, place: int, now: int) -> bool:
    """Start the job where no reservation forbids it, or where it may make room."""
    shape = s.shapes[s.jobs[job].shape_id]
    best, a, b, c = -1, 0, 0, 0
    for i in range(shape.sp_lo, shape.sp_hi):
        if _may_start(s, job, i, place, now):
            x, y, z = 0, 0, 0
            if s.rule[PLACEMENT] != LISTED:
                x, y, z = place_of(s, job, i)
            if best < 0 or x < a or (x == a and (y < b or (y == b and z < c))):
                best, a, b, c = i, x, y, z
    if best >= 0:
        start(s, job, best, now)
        return True
    if s.lanes[shape.lane].rights:
        for k in range(in_placement_order(s, job)):
            i = s.pool_order[k]
            if may_evict(s, i, now) and make_room(s, job, i, now):
                start(s, job, i, now)
                return True
    return False


@jit
def _anybody(s: State, lane: int, now: int) -> bool:
    """Say whether it is worth making reservations: whether anybody fits, or may make room."""
    row = s.lanes[lane]
    for k in range(row.queue_lo, row.queue_lo + row.n):
        queue = s.queues[s.lane_queues[k]]
        for m in range(queue.active_lo, queue.active_lo + queue.n_active):
            if hopeful(s, s.active_shapes[m], now):
                return True
    return False


@jit
def easy_lane_pass(s: State, place: int, now: int) -> None:
    """Admit whom the state and the reservations allow in one lane; they are made anew each time."""
    lane = s.lanes[s.lane_order[place]]
    again = True
    while again and _anybody(s, s.lane_order[place], now):
        _hold(s, place)
        again = False
        best, best_first, best_turn = -1, NOBODY, NOBODY
        for k in range(lane.queue_lo, lane.queue_lo + lane.n):
            queue = s.queues[s.lane_queues[k]]
            if queue.first > best_first:
                continue
            for m in range(queue.active_lo, queue.active_lo + queue.n_active):
                job = _next_in_shape(s, s.active_shapes[m], place, now)
                if job >= 0 and (queue.first < best_first or s.turn[job] < best_turn):
                    best, best_first, best_turn = job, queue.first, s.turn[job]
        if best >= 0:
            # A refusal is remembered, so whoever is tried in vain is not tried again.
            _admit(s, best, place, now)
            again = True
