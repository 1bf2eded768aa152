"""Why everybody still waits, as the pass that ends now has found it (section 7).

A reason depends only on what happened in a job's pools and in its project's lane. So after a pass
only those shapes are looked at for which one of the checks may come out differently: the sizes
between what was free before and what is free now, and those of the project whose use has changed.
"""

from __future__ import annotations

from planner.engine.kernel.layout import (
    CAPACITY,
    ENTERED,
    FITS,
    FRAGMENTED,
    LANES,
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
from planner.engine.kernel.quota import stage


@jit
def _recheck(s: State, i: int) -> None:
    """Find the first check that fails in one pool, and note when it is another than before."""
    sp = s.sps[i]
    found = stage(s, i)
    if found != sp.stage:
        sp.stage = found
        shape = s.shapes[sp.shape_id]
        if not shape.touched:
            shape.touched = 1
            s.touched[s.st[TOUCHED]] = sp.shape_id
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
    lanes = s.rule[LANES]
    for lane in range(lanes):
        pl = s.pls[p * lanes + lane]
        for k in range(pl.lo, pl.lo + pl.n):
            bucket = s.buckets[s.active_buckets[k]]
            gpus = bucket.gpus
            physical = _physical(s, p, gpus)
            if outage or physical != bucket.physical or least < gpus <= most:
                bucket.physical = physical
                for m in range(bucket.lo, bucket.lo + bucket.n):
                    _recheck(s, s.members[m])


@jit
def _note_row(s: State, r: int) -> None:
    """Look again at a project's own shapes in a pool where its use has changed."""
    row = s.rows[r]
    row.changed = 0
    if row.usage == row.noted:
        return
    row.noted = row.usage
    project = s.projects[row.project]
    for q in range(project.queue_lo, project.queue_hi):
        queue = s.queues[q]
        for k in range(queue.active_lo, queue.active_lo + queue.n_active):
            shape = s.shapes[s.active_shapes[k]]
            for i in range(shape.sp_lo, shape.sp_hi):
                if s.sps[i].row == r:
                    _recheck(s, i)


@jit
def _note_queue(s: State, q: int) -> None:
    """Look again at a queue whose lane has a limit, when what it holds has changed."""
    queue = s.queues[q]
    queue.changed = 0
    if queue.use == queue.noted_use:
        return
    queue.noted_use = queue.use
    for k in range(queue.active_lo, queue.active_lo + queue.n_active):
        shape = s.shapes[s.active_shapes[k]]
        for i in range(shape.sp_lo, shape.sp_hi):
            _recheck(s, i)


@jit
def _note_entered(s: State, g: int) -> None:
    """Look at a shape of which nobody waited before."""
    shape = s.shapes[g]
    shape.entered = 0
    if shape.active_at < 0:
        return
    for i in range(shape.sp_lo, shape.sp_hi):
        bucket = s.buckets[s.sps[i].bucket]
        bucket.physical = _physical(s, s.sps[i].pool, bucket.gpus)
        s.sps[i].stage = -1
        _recheck(s, i)


@jit
def _write_log(s: State, g: int, now: int) -> None:
    shape = s.shapes[g]
    shape.touched = 0
    if shape.active_at < 0:
        return
    reason = 0
    for i in range(shape.sp_lo, shape.sp_hi):
        reason = max(reason, s.sps[i].stage)
    if reason != s.log[shape.log].reason:
        at = s.st[LOG]
        s.st[LOG] += 1
        change = s.log[at]
        change.time, change.reason, change.next = now, reason, -1
        s.log[shape.log].next = at
        shape.log = at


@jit
def _note_head(s: State, q: int, now: int) -> None:
    """Tell the head of a strict queue why it waits, and those it has overtaken that they do."""
    queue = s.queues[q]
    queue.head_changed = 0
    head = -1
    if queue.n_active > 0:
        if queue.line:
            head = queue.line_first
        else:
            head = s.shapes[best_in_queue(s, q, now)].first
    before = queue.noted_head
    queue.noted_head = head
    if before >= 0 and before != head and s.jobs[before].is_head:
        end_spell(s, before, now)
        s.jobs[before].is_head = 0
    if head >= 0 and not s.jobs[head].is_head:
        end_spell(s, head, now)
        s.jobs[head].is_head = 1
        s.jobs[head].log = s.shapes[s.jobs[head].shape_id].log


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
