"""One pass: whom the state admits, lane by lane (section 4), without looking at those it cannot.

Who was refused stays refused until a pool, or the project's use of the lane, gives something
back. So a pass gathers the shapes for which that has happened, and tries those in order.
"""

from __future__ import annotations

from planner.engine.kernel.courses import staging, start
from planner.engine.kernel.layout import (
    CANDIDATES,
    CHANGED,
    FAIR_SHARE,
    FITS,
    FRESH,
    GATHER_AGAIN,
    LANE_LIMIT,
    LANES,
    LISTED,
    LOCALITY,
    MULTIFACTOR,
    NEVER,
    ORDER,
    PACK,
    PLACEMENT,
    RECLAIM_NEVER,
    RECLAIMS,
    RELEASED,
    State,
    inlined,
    jit,
)
from planner.engine.kernel.nodes import nodes_fit
from planner.engine.kernel.queues import head_of, uses_scores
from planner.engine.kernel.quota import compare_shares, kin_fit, stage
from planner.engine.kernel.scores import score
from planner.engine.kernel.victims import make_room, worth_a_look

# --- Placement order -----------------------------------------------------------------------------


@jit
def place_of(s: State, job: int, i: int) -> tuple[int, int, int]:
    """Rank one of the job's pools by the rule of placement; the smallest is tried first."""
    sp = s.sps[i]
    pool = s.pools[sp.pool]
    rule = s.rule[PLACEMENT]
    free = 0 if pool.out > 0 else pool.free
    if rule == LOCALITY:
        away = 0 if s.at_home[s.kind[job], pool.region] else 1
        return away, staging(s, job, sp.pool), -free
    shape = s.shapes[sp.shape_id]
    if rule == PACK:
        fits = shape.gpus <= pool.free and nodes_fit(s, sp.pool, shape.gpus)
        return 0 if fits else 1, free, 0
    return s.domain_use[shape.project, pool.domain], -free, 0


@inlined
def _first_that_fits(s: State, job: int) -> int:
    """Return the place of the shape where the job fits now and would go first; -1: none."""
    shape = s.shapes[s.jobs[job].shape_id]
    best = -1
    a, b, c = 0, 0, 0
    for i in range(shape.sp_lo, shape.sp_hi):
        if stage(s, i) != FITS:
            continue
        if s.rule[PLACEMENT] == LISTED:
            return i
        x, y, z = 0, 0, 0
        if shape.sp_hi - shape.sp_lo > 1:
            x, y, z = place_of(s, job, i)
        if best < 0 or x < a or (x == a and (y < b or (y == b and z < c))):
            best, a, b, c = i, x, y, z
    return best


@jit
def in_placement_order(s: State, job: int) -> int:
    """Put all pools of the job into placement order, into `pool_order`; return their number."""
    shape = s.shapes[s.jobs[job].shape_id]
    n = shape.sp_hi - shape.sp_lo
    for k in range(n):
        i = shape.sp_lo + k
        at = k
        if s.rule[PLACEMENT] != LISTED:
            x, y, z = place_of(s, job, i)
            while at > 0:
                a, b, c = place_of(s, job, s.pool_order[at - 1])
                if a < x or (a == x and (b < y or (b == y and c <= z))):
                    break
                s.pool_order[at] = s.pool_order[at - 1]
                at -= 1
        s.pool_order[at] = i
    return n


# --- Who is tried --------------------------------------------------------------------------------


@jit
def may_evict(s: State, i: int, now: int) -> bool:
    """Say whether it is worth looking for victims for a shape in one of its pools."""
    sp = s.sps[i]
    if sp.version == s.pools[sp.pool].version and now < sp.ask_from:
        return False
    found = stage(s, i)
    return LANE_LIMIT < found < FITS and worth_a_look(s, i)


@jit
def hopeful(s: State, g: int, now: int) -> bool:
    """Say whether a shape fits in one of its pools, or may make room in one."""
    shape = s.shapes[g]
    if kin_fit(s, shape.kin):
        return True
    if s.lanes[shape.lane].rights:
        for i in range(shape.sp_lo, shape.sp_hi):
            if may_evict(s, i, now):
                return True
    return False


@jit
def _add(s: State, g: int) -> None:
    shape = s.shapes[g]
    if not shape.candidate:
        shape.candidate = 1
        s.candidates[s.st[CANDIDATES]] = g
        s.st[CANDIDATES] += 1


@jit
def _gather_pool(s: State, p: int, lane: int, now: int) -> None:
    """Gather the shapes of a lane that fit into a pool that has given something back."""
    pool = s.pools[p]
    if pool.out > 0:
        return
    free = pool.free
    rights = s.lanes[lane].rights
    if free == 0 and not rights:
        return
    # More than this no project's quota gives here.
    room = 0
    for c in range(pool.cohort_lo, pool.cohort_hi):
        cohort = s.cohorts[c]
        room = max(room, cohort.capacity - cohort.used + cohort.most_guaranteed)
    pl = s.pls[p * s.rule[LANES] + lane]
    for k in range(pl.lo, pl.lo + pl.n):
        bucket = s.buckets[s.active_buckets[k]]
        gpus = bucket.gpus
        fits = gpus <= free and gpus <= room and nodes_fit(s, p, gpus)
        if not fits and not rights:
            continue
        for m in range(bucket.lo, bucket.lo + bucket.n):
            i = s.members[m]
            g = s.sps[i].shape_id
            shape = s.shapes[g]
            if shape.candidate:
                continue
            if (fits and kin_fit(s, shape.kin)) or (rights and may_evict(s, i, now)):
                _add(s, g)


@jit
def _gather_queue(s: State, q: int, now: int) -> None:
    queue = s.queues[q]
    for k in range(queue.active_lo, queue.active_lo + queue.n_active):
        g = s.active_shapes[k]
        if not s.shapes[g].candidate and hopeful(s, g, now):
            _add(s, g)


@jit
def _gather_fresh(s: State, lane: int, now: int) -> None:
    """Gather the shapes that are tried for the first time."""
    for k in range(s.st[FRESH]):
        g = s.fresh[k]
        shape = s.shapes[g]
        waits = shape.lane == lane and shape.active_at >= 0 and not shape.candidate
        if waits and hopeful(s, g, now):
            _add(s, g)


@jit
def _gather(s: State, lane: int, now: int) -> None:
    """Gather every shape of a lane that may be admitted now."""
    for k in range(s.st[CHANGED]):
        _gather_pool(s, s.changed[k], lane, now)
    for k in range(s.st[RELEASED]):
        if s.queues[s.released[k]].lane == lane:
            _gather_queue(s, s.released[k], now)
    _gather_fresh(s, lane, now)
    row = s.lanes[lane]
    ask = row.ask_from <= now  # somebody's protection has run out
    # A line by score may have got another head by its age alone.
    if ask or (row.strict and uses_scores(s)):
        if ask:
            row.ask_from = NEVER
        for k in range(row.queue_lo, row.queue_lo + row.n):
            _gather_queue(s, s.lane_queues[k], now)
            if ask:
                _remember_when(s, s.lane_queues[k], now)


@jit
def _remember_when(s: State, q: int, now: int) -> None:
    """Keep when a queue's shapes will have to be asked again about victims."""
    queue = s.queues[q]
    lane = s.lanes[queue.lane]
    for k in range(queue.active_lo, queue.active_lo + queue.n_active):
        shape = s.shapes[s.active_shapes[k]]
        for i in range(shape.sp_lo, shape.sp_hi):
            sp = s.sps[i]
            if sp.version == s.pools[sp.pool].version and now < sp.ask_from < lane.ask_from:
                lane.ask_from = sp.ask_from


# --- In which order ------------------------------------------------------------------------------


@jit
def best_in_queue(s: State, q: int, now: int) -> int:
    """Return the shape of the queue's first job, by score."""
    queue = s.queues[q]
    best, most, best_turn = -1, 0.0, 0
    for k in range(queue.active_lo, queue.active_lo + queue.n_active):
        g = s.active_shapes[k]
        job = head_of(s, g)
        mine, turn = score(s, job, now), s.turn[job]
        if best < 0 or mine > most or (mine == most and turn < best_turn):
            best, most, best_turn = g, mine, turn
    return best


@jit
def _comes_before(s: State, a: int, b: int, now: int) -> bool:
    """Say whether shape a is tried before shape b of the same lane."""
    left, right = s.shapes[a], s.shapes[b]
    order = s.rule[ORDER]
    if left.queue == right.queue:
        i, j = head_of(s, a), head_of(s, b)
        if order == MULTIFACTOR:
            mine, theirs = score(s, i, now), score(s, j, now)
            if mine != theirs:
                return mine > theirs
        return s.turn[i] < s.turn[j]
    if order == MULTIFACTOR:
        i = head_of(s, best_in_queue(s, left.queue, now))
        j = head_of(s, best_in_queue(s, right.queue, now))
        mine, theirs = score(s, i, now), score(s, j, now)
        return mine > theirs if mine != theirs else i < j
    if order == FAIR_SHARE:
        by_share = compare_shares(s, left.project, right.project)
        if by_share != 0:
            return by_share < 0
    return s.queues[left.queue].first < s.queues[right.queue].first


@jit
def _pick(s: State, now: int) -> int:
    """Return the place of the candidate that is tried first; -1: none is left."""
    best = -1
    k = 0
    while k < s.st[CANDIDATES]:
        g = s.candidates[k]
        shape = s.shapes[g]
        # What has started since has left too little for most of the others.
        if shape.active_at < 0 or not hopeful(s, g, now):
            _drop(s, k)
            continue
        queue = s.queues[shape.queue]
        if queue.strict and uses_scores(s) and best_in_queue(s, shape.queue, now) != g:
            k += 1  # behind the head of its strict queue
            continue
        if best < 0 or _comes_before(s, g, s.candidates[best], now):
            best = k
        k += 1
    return best


@jit
def _drop(s: State, k: int) -> None:
    s.shapes[s.candidates[k]].candidate = 0
    s.st[CANDIDATES] -= 1
    s.candidates[k] = s.candidates[s.st[CANDIDATES]]


@inlined
def admit(s: State, job: int, now: int) -> bool:
    """Start a job where it fits, or where others can be displaced for it."""
    i = _first_that_fits(s, job)
    if i >= 0:
        start(s, job, i, now)
        return True
    lane = s.lanes[s.shapes[s.jobs[job].shape_id].lane]
    if not lane.rights:
        return False
    for k in range(in_placement_order(s, job)):
        i = s.pool_order[k]
        if not may_evict(s, i, now):
            continue
        if make_room(s, job, i, now):
            start(s, job, i, now)
            s.st[GATHER_AGAIN] = 1
            return True
        lane.ask_from = min(lane.ask_from, s.sps[i].ask_from)
    return False


@jit
def lane_pass(s: State, lane: int, now: int) -> None:
    """Admit whom the state allows in one lane, one after the other."""
    s.st[CANDIDATES] = 0
    _gather(s, lane, now)
    while True:
        k = _pick(s, now)
        if k < 0:
            break
        g = s.candidates[k]
        s.st[GATHER_AGAIN] = s.rule[RECLAIMS] != RECLAIM_NEVER
        admitted = admit(s, head_of(s, g), now)
        if not admitted or s.shapes[g].active_at < 0:
            _drop(s, k)
        queue = s.queues[s.shapes[g].queue]
        if admitted and queue.line and queue.n_active > 0:
            head = s.active_shapes[queue.active_lo]  # the line has a new head
            if not s.shapes[head].candidate and hopeful(s, head, now):
                _add(s, head)
        # Victims may have left more than was needed, and whoever starts may now be a borrower.
        if admitted and s.st[GATHER_AGAIN]:
            _gather(s, lane, now)
    for k in range(s.st[CANDIDATES]):
        s.shapes[s.candidates[k]].candidate = 0
    s.st[CANDIDATES] = 0
