"""Who waits: queues, the shapes in them, and the lists by which a pass finds whom it may admit.

Waiting jobs of one project, lane, size and set of pools are refused alike, so a shape is looked at
once for all of them. A shape that may be tried stands in one bucket of each of its pools: those
of a strict queue only while one of its jobs is the head of the line.
"""

from __future__ import annotations

from planner.engine.kernel.layout import (
    BEHIND,
    CHANGED,
    ENTERED,
    FRESH,
    MULTIFACTOR,
    NOTE_HEADS,
    NOTE_QUEUES,
    NOTE_ROWS,
    ORDER,
    RELEASED,
    SPELLS,
    STAMP,
    SUSPENDED,
    SUSPENDED_STATE,
    TO_NOTE,
    WAITERS,
    State,
    inlined,
    jit,
)

NOBODY = 0x7FFFFFFF  # later than any turn


# --- What has changed since it was last looked at ------------------------------------------------


@jit
def pool_changed(s: State, p: int) -> None:
    """Note that the reasons of this pool's waiting jobs have to be looked at."""
    pool = s.pools[p]
    pool.version += 1
    s.st[STAMP] += 1
    if not pool.to_note:
        pool.to_note = 1
        s.to_note[s.st[TO_NOTE]] = p
        s.st[TO_NOTE] += 1


@jit
def pool_may_admit(s: State, p: int) -> None:
    """Note that somebody who was refused may find room in the pool."""
    pool = s.pools[p]
    if not pool.changed:
        pool.changed = 1
        s.changed[s.st[CHANGED]] = p
        s.st[CHANGED] += 1


@inlined
def lane_use_changed(s: State, q: int, gpus: int) -> None:
    """Count what the project holds in the lane."""
    queue = s.queues[q]
    queue.use += gpus
    if queue.limit < 1 << 62:
        if not queue.changed:
            queue.changed = 1
            s.note_queues[s.st[NOTE_QUEUES]] = q
            s.st[NOTE_QUEUES] += 1
        if gpus < 0 and not queue.released:
            queue.released = 1
            s.released[s.st[RELEASED]] = q
            s.st[RELEASED] += 1


@inlined
def row_changed(s: State, r: int) -> None:
    """Note that the project's own use of the pool has changed."""
    row = s.rows[r]
    s.projects[row.project].stale = 1
    limited = s.limited_rows[r]
    if limited.kp_lo < limited.kp_hi and not row.changed:
        row.changed = 1
        s.note_rows[s.st[NOTE_ROWS]] = r
        s.st[NOTE_ROWS] += 1


# --- Shapes that may be tried --------------------------------------------------------------------


@jit
def activate(s: State, g: int) -> None:
    """Let a shape be tried from now on."""
    shape = s.shapes[g]
    queue = s.queues[shape.queue]
    for i in range(shape.sp_lo, shape.sp_hi):
        sp = s.sps[i]
        bucket = s.buckets[sp.bucket]
        if bucket.n == 0:
            pl = s.pls[bucket.pl]
            bucket.active_at = pl.n
            s.active_buckets[pl.lo + pl.n] = sp.bucket
            pl.n += 1
        sp.member_at = bucket.n
        s.members[bucket.lo + bucket.n] = i
        bucket.n += 1
        sp.version = -1
    if queue.n_active == 0:
        lane = s.lanes[queue.lane]
        queue.lane_at = lane.n
        s.lane_queues[lane.queue_lo + lane.n] = shape.queue
        lane.n += 1
    shape.active_at = queue.n_active
    s.active_shapes[queue.active_lo + queue.n_active] = g
    queue.n_active += 1
    if not shape.fresh:
        shape.fresh = 1
        s.fresh[s.st[FRESH]] = g
        s.st[FRESH] += 1
    _kin_enters(s, shape.kin)


@inlined
def _kin_enters(s: State, f: int) -> None:
    """Count a shape that waits; with the first one its kin's reason has to be looked at."""
    kin = s.kins[f]
    kin.n += 1
    if kin.n > 1:
        return
    for i in range(kin.kp_lo, kin.kp_hi):
        kp = s.kps[i]
        size = s.sizes[kp.size_at]
        if size.n == 0:
            pool = s.pools[kp.pool]
            size.active_at = pool.n_sizes
            s.active_sizes[pool.size_lo + pool.n_sizes] = kp.size_at
            pool.n_sizes += 1
        kp.member_at = size.n
        s.size_members[size.lo + size.n] = i
        size.n += 1
    if not kin.entered:
        kin.entered = 1
        s.entered[s.st[ENTERED]] = f
        s.st[ENTERED] += 1


@inlined
def _kin_leaves(s: State, f: int) -> None:
    kin = s.kins[f]
    kin.n -= 1
    if kin.n > 0:
        return
    for i in range(kin.kp_lo, kin.kp_hi):
        kp = s.kps[i]
        size = s.sizes[kp.size_at]
        size.n -= 1
        other = s.size_members[size.lo + size.n]
        s.size_members[size.lo + kp.member_at] = other
        s.kps[other].member_at = kp.member_at
        if size.n == 0:
            pool = s.pools[kp.pool]
            pool.n_sizes -= 1
            last = s.active_sizes[pool.size_lo + pool.n_sizes]
            s.active_sizes[pool.size_lo + size.active_at] = last
            s.sizes[last].active_at = size.active_at


@jit
def deactivate(s: State, g: int) -> None:
    """Let a shape no longer be tried."""
    shape = s.shapes[g]
    queue = s.queues[shape.queue]
    for i in range(shape.sp_lo, shape.sp_hi):
        sp = s.sps[i]
        bucket = s.buckets[sp.bucket]
        bucket.n -= 1
        other = s.members[bucket.lo + bucket.n]
        s.members[bucket.lo + sp.member_at] = other
        s.sps[other].member_at = sp.member_at
        if bucket.n == 0:
            pl = s.pls[bucket.pl]
            pl.n -= 1
            last = s.active_buckets[pl.lo + pl.n]
            s.active_buckets[pl.lo + bucket.active_at] = last
            s.buckets[last].active_at = bucket.active_at
    queue.n_active -= 1
    last = s.active_shapes[queue.active_lo + queue.n_active]
    s.active_shapes[queue.active_lo + shape.active_at] = last
    s.shapes[last].active_at = shape.active_at
    shape.active_at = -1
    _kin_leaves(s, shape.kin)
    if queue.n_active == 0:
        lane = s.lanes[queue.lane]
        lane.n -= 1
        last = s.lane_queues[lane.queue_lo + lane.n]
        s.lane_queues[lane.queue_lo + queue.lane_at] = last
        s.queues[last].lane_at = queue.lane_at


@jit
def head_of(s: State, g: int) -> int:
    """Return the job of an active shape that is tried first."""
    shape = s.shapes[g]
    queue = s.queues[shape.queue]
    return queue.line_first if queue.line else shape.first


# --- Coming and going ----------------------------------------------------------------------------


@jit
def _link(s: State, job: int, first: int, last: int) -> tuple[int, int]:
    """Put a job into a list that is kept by turn; return the list's new ends."""
    j = s.jobs[job]
    turn = s.turn[job]
    if last < 0 or s.turn[last] < turn:
        j.prev, j.next = last, -1
        if last >= 0:
            s.jobs[last].next = job
        else:
            first = job
        return first, job
    after = first
    while s.turn[after] < turn:
        after = s.jobs[after].next
    before = s.jobs[after].prev
    j.prev, j.next = before, after
    s.jobs[after].prev = job
    if before >= 0:
        s.jobs[before].next = job
    else:
        first = job
    return first, last


@jit
def _unlink(s: State, job: int, first: int, last: int) -> tuple[int, int]:
    j = s.jobs[job]
    if j.prev >= 0:
        s.jobs[j.prev].next = j.next
    else:
        first = j.next
    if j.next >= 0:
        s.jobs[j.next].prev = j.prev
    else:
        last = j.prev
    return first, last


@jit
def _head_changes(s: State, q: int) -> None:
    queue = s.queues[q]
    if not queue.head_changed:
        queue.head_changed = 1
        s.note_heads[s.st[NOTE_HEADS]] = q
        s.st[NOTE_HEADS] += 1


@inlined
def _reopen(s: State, q: int, before: int) -> None:
    """Look whose shape stands for a line now, after it was `before`'s (-1: nobody's)."""
    queue = s.queues[q]
    now = queue.line_first
    old = -1 if before < 0 else s.jobs[before].shape_id
    new = -1 if now < 0 else s.jobs[now].shape_id
    if before != now:
        _head_changes(s, q)
    if old != new:
        if old >= 0:
            deactivate(s, old)
        if new >= 0:
            activate(s, new)


@jit
def enter(s: State, job: int, now: int) -> None:
    """Let a job wait from now on."""
    j = s.jobs[job]
    shape = s.shapes[j.shape_id]
    queue = s.queues[shape.queue]
    j.since, j.is_head = now, 0
    j.log = s.kins[shape.kin].log
    s.st[WAITERS] += 1
    s.lanes[shape.lane].waiting += 1
    if queue.line:
        before = queue.line_first
        first, last = _link(s, job, before, queue.line_last)
        queue.line_first, queue.line_last = first, last
        queue.first = s.turn[first]
        _reopen(s, shape.queue, before)
        return
    if s.turn[job] < queue.first:
        queue.first = s.turn[job]
    empty = shape.first < 0
    first, last = _link(s, job, shape.first, shape.last)
    shape.first, shape.last = first, last
    if empty:
        activate(s, j.shape_id)
    if queue.strict:
        _head_changes(s, shape.queue)


@inlined
def leave(s: State, job: int) -> None:
    """Take a job out of its queue: it starts."""
    j = s.jobs[job]
    shape = s.shapes[j.shape_id]
    queue = s.queues[shape.queue]
    s.st[WAITERS] -= 1
    s.lanes[shape.lane].waiting -= 1
    if queue.line:
        before = queue.line_first
        first, last = _unlink(s, job, before, queue.line_last)
        queue.line_first, queue.line_last = first, last
        queue.first = s.turn[first] if first >= 0 else NOBODY
        _reopen(s, shape.queue, before)
        return
    first, last = _unlink(s, job, shape.first, shape.last)
    shape.first, shape.last = first, last
    if first < 0:
        deactivate(s, j.shape_id)
    if s.turn[job] == queue.first:
        earliest = NOBODY
        for k in range(queue.active_lo, queue.active_lo + queue.n_active):
            turn = s.turn[s.shapes[s.active_shapes[k]].first]
            if turn < earliest:
                earliest = turn
        queue.first = earliest
    if queue.strict:
        _head_changes(s, shape.queue)


# --- Spells of waiting ---------------------------------------------------------------------------


@jit
def spell(s: State, job: int, start: int, end: int, ref: int) -> None:
    """Write down a spell: `ref` is a place in the log of the job's shape, or -1 - a reason."""
    row = s.spells[s.st[SPELLS]]
    row.job, row.start, row.end, row.ref = job, start, end, ref
    s.st[SPELLS] += 1


@jit
def end_spell(s: State, job: int, now: int) -> None:
    """Write down why a queued job has waited since its spell began."""
    j = s.jobs[job]
    if now > j.since:
        if j.state == SUSPENDED_STATE:
            ref = -1 - SUSPENDED
        elif s.queues[s.shapes[j.shape_id].queue].strict and not j.is_head:
            ref = -1 - BEHIND
        else:
            ref = j.log
        spell(s, job, j.since, now, ref)
    j.since = now


@jit
def uses_scores(s: State) -> bool:
    """Say whether a strict queue's head is found by its score, not by its turn."""
    return s.rule[ORDER] == MULTIFACTOR
