"""Why everybody still waits, as the pass that ends now has found it (section 7).

A reason depends only on what happened in a job's pools and in its project's lane. Shapes
of one size and cohort, with the same pools and no limit of their own, wait for the same reason
whatever happens: they are kin, and looked at once. After a pass only those are looked at for whom
one of the checks may come out differently: the sizes between what was free before and what is free
now, and those with limits of a project whose use has changed.
"""

from __future__ import annotations

from planner.engine.kernel.layout import (
    CAPACITY,
    ENTERED,
    FITS,
    FRAGMENTED,
    LOG,
    NEVER,
    NOTE_HEADS,
    NOTE_QUEUES,
    NOTE_ROWS,
    TO_NOTE,
    TOUCHED,
    State,
    jit,
)
from planner.engine.kernel.nodes import nodes_fit
from planner.engine.kernel.passes import best_in_queue
from planner.engine.kernel.queues import end_spell, uses_scores
from planner.engine.kernel.quota import first_failing


@jit
def _recheck(s: State, i: int) -> None:
    """Find the first check that fails in one pool, and note when it is another than before."""
    kp = s.kps[i]
    kin = s.kins[kp.kin]
    found = first_failing(s, kp.pool, kp.row, kp.queue, kin.gpus)
    if found != kp.stage:
        kp.stage = found
        if not kin.touched:
            kin.touched = 1
            s.touched[s.st[TOUCHED]] = kp.kin
            s.st[TOUCHED] += 1


@jit
def _physical(s: State, p: int, gpus: int) -> int:
    if gpus > s.pools[p].free:
        return CAPACITY
    return FITS if nodes_fit(s, p, gpus) else FRAGMENTED


@jit
def _note_pool(s: State, p: int) -> None:
    pool = s.pools[p]
    pool.to_note = 0
    outage = (pool.out > 0) != (pool.noted_out > 0)
    pool.noted_out = pool.out
    # Between which sizes may quota have changed its answer for those who lend and borrow here?
    least, most = NEVER, -1
    for c in range(pool.cohort_lo, pool.cohort_hi):
        cohort = s.cohorts[c]
        room, noted = cohort.capacity - cohort.used, cohort.noted_room
        if room != noted:
            least = min(least, room, noted)
            most = max(most, max(room, noted) + cohort.most_guaranteed)
            cohort.noted_room = room
    for k in range(pool.size_lo, pool.size_lo + pool.n_sizes):
        size = s.sizes[s.active_sizes[k]]
        physical = _physical(s, p, size.gpus)
        if outage or physical != size.physical or least < size.gpus <= most:
            size.physical = physical
            for m in range(size.lo, size.lo + size.n):
                _recheck(s, s.size_members[m])


@jit
def _note_limited(s: State, lo: int, hi: int) -> None:
    """Look again at kin whom a use of their own concerns."""
    for k in range(lo, hi):
        i = s.limited[k]
        if s.kins[s.kps[i].kin].n > 0:
            _recheck(s, i)


@jit
def _note_row(s: State, r: int) -> None:
    """Look again at those of a project with limits, in a pool where its use has changed."""
    row = s.rows[r]
    row.changed = 0
    if row.usage != row.noted:
        row.noted = row.usage
        _note_limited(s, s.limited_rows[r].kp_lo, s.limited_rows[r].kp_hi)


@jit
def _note_queue(s: State, q: int) -> None:
    """Look again at a queue whose lane has a limit, when what it holds has changed."""
    queue = s.queues[q]
    queue.changed = 0
    if queue.use != queue.noted_use:
        queue.noted_use = queue.use
        _note_limited(s, s.limited_queues[q].kp_lo, s.limited_queues[q].kp_hi)


@jit
def _note_entered(s: State, f: int) -> None:
    """Look at kin of whom nobody waited before."""
    kin = s.kins[f]
    kin.entered = 0
    if kin.n == 0:
        return
    for i in range(kin.kp_lo, kin.kp_hi):
        kp = s.kps[i]
        s.sizes[kp.size_at].physical = _physical(s, kp.pool, kin.gpus)
        kp.stage = -1
        _recheck(s, i)


@jit
def _write_log(s: State, f: int, now: int) -> None:
    kin = s.kins[f]
    kin.touched = 0
    if kin.n == 0:
        return
    reason = 0
    for i in range(kin.kp_lo, kin.kp_hi):
        reason = max(reason, s.kps[i].stage)
    if reason != s.log[kin.log].reason:
        at = s.st[LOG]
        s.st[LOG] += 1
        change = s.log[at]
        change.time, change.reason, change.next = now, reason, -1
        s.log[kin.log].next = at
        kin.log = at


@jit
def _note_head(s: State, q: int, now: int) -> None:
    """Tell the head of a strict queue why it waits, and those it has overtaken that they do."""
    queue = s.queues[q]
    queue.head_changed = 0
    head = queue.line_first
    if not queue.line and queue.n_active > 0:
        head = s.shapes[best_in_queue(s, q, now)].first
    before = queue.noted_head
    queue.noted_head = head
    if before >= 0 and before != head and s.jobs[before].is_head:
        end_spell(s, before, now)
        s.jobs[before].is_head = 0
    if head >= 0 and not s.jobs[head].is_head:
        end_spell(s, head, now)
        s.jobs[head].is_head = 1
        s.jobs[head].log = s.kins[s.shapes[s.jobs[head].shape_id].kin].log


@jit
def note_reasons(s: State, now: int) -> None:
    """Keep why each job still waits."""
    st = s.st
    for k in range(st[TO_NOTE]):
        _note_pool(s, s.to_note[k])
    st[TO_NOTE] = 0
    for k in range(st[NOTE_ROWS]):
        _note_row(s, s.note_rows[k])
    st[NOTE_ROWS] = 0
    for k in range(st[NOTE_QUEUES]):
        _note_queue(s, s.note_queues[k])
    st[NOTE_QUEUES] = 0
    for k in range(st[ENTERED]):
        _note_entered(s, s.entered[k])
    st[ENTERED] = 0
    for k in range(st[TOUCHED]):
        _write_log(s, s.touched[k], now)
    st[TOUCHED] = 0
    if uses_scores(s):
        for lane in range(s.lanes.size):
            row = s.lanes[lane]
            if row.strict:
                for k in range(row.queue_lo, row.queue_lo + row.n):
                    _note_head(s, s.lane_queues[k], now)
    for k in range(st[NOTE_HEADS]):
        _note_head(s, s.note_heads[k], now)
    st[NOTE_HEADS] = 0
