"""What happens to one job: its attempts, what they keep, the events they lead to (section 6)."""

from __future__ import annotations

from typing import Any

from planner.engine.kernel.layout import (
    ATTEMPTS,
    BACK_OFFS,
    CANCEL,
    CANCELLED,
    COMPLETIONS,
    DONE,
    EVICTED,
    EVICTED_NOW,
    EVICTIONS,
    FINISHED,
    MULTIFACTOR,
    NEVER,
    ORDER,
    OUTAGE,
    PLACEMENT,
    RECLAIM_NEVER,
    RECLAIMS,
    REQUEUE,
    RUNNERS,
    RUNNING,
    SPREAD,
    STILL_RUNNING,
    SUSPEND,
    SUSPENDED_STATE,
    WAITING,
    State,
    inlined,
    jit,
)
from planner.engine.kernel.nodes import give, take
from planner.engine.kernel.queues import (
    end_spell,
    lane_use_changed,
    leave,
    pool_changed,
    pool_may_admit,
    row_changed,
)
from planner.engine.kernel.quota import book
from planner.engine.kernel.scores import keep_score

_FOREVER = 1 << 53  # no run goes further


# --- Heaps of events -----------------------------------------------------------------------------


@jit
def push(heap: Any, n: int, time: int, what: int) -> None:
    """Add an event to a heap of `n`."""
    at = n
    while at > 0:
        above = (at - 1) >> 1
        if heap[above].time <= time:
            break
        heap[at].time, heap[at].what = heap[above].time, heap[above].what
        at = above
    heap[at].time, heap[at].what = time, what


@jit
def pop(heap: Any, n: int) -> None:
    """Remove the earliest event from a heap of `n`."""
    n -= 1
    time, what = heap[n].time, heap[n].what
    at = 0
    below = 1
    while below < n:
        if below + 1 < n and heap[below + 1].time < heap[below].time:
            below += 1
        if heap[below].time >= time:
            break
        heap[at].time, heap[at].what = heap[below].time, heap[below].what
        at = below
        below = 2 * at + 1
    heap[at].time, heap[at].what = time, what


@jit
def purge(s: State) -> None:
    """Drop the ends of attempts that an eviction has ended before."""
    n, kept = s.st[COMPLETIONS], 0
    for k in range(n):
        time, what = s.completions[k].time, s.completions[k].what
        if s.attempts[what].ended == STILL_RUNNING:
            push(s.completions, kept, time, what)
            kept += 1
    s.st[COMPLETIONS] = kept


# --- An attempt ----------------------------------------------------------------------------------


@jit
def writing_seconds(s: State, job: int, p: int) -> int:
    """Return how long one checkpoint of the job takes from this pool."""
    storage = s.pools[p].storage
    return 0 if storage < 0 else s.write_seconds[s.kind[job], storage]


@jit
def staging(s: State, job: int, p: int) -> int:
    """Return the seconds the job would spend on staging in this pool."""
    region = s.pools[p].region
    seconds = s.staging_seconds[s.kind[job], region]
    if seconds > 0:
        a = s.jobs[job].attempt
        while a >= 0:
            attempt = s.attempts[a]
            if attempt.staged and s.pools[attempt.pool].region == region:
                return 0
            a = attempt.prev
    return seconds


@inlined
def _planned(s: State, job: int, p: int, before: int) -> int:
    """Return how long the attempt takes if nothing interrupts it; `before`: staging, restart."""
    left = s.work[job] - s.jobs[job].saved
    total = before + left
    interval = s.interval[job]
    if interval > 0 and left > interval:
        write = writing_seconds(s, job, p)
        if write > 0:
            writes = (left - 1) // interval
            if writes > _FOREVER // write:
                return NEVER
            total += writes * write
    return total


@jit
def progress(s: State, a: int, elapsed: int) -> tuple[int, int]:
    """Return the useful seconds of an attempt so far, and those its last checkpoint holds."""
    attempt = s.attempts[a]
    at_work = elapsed - attempt.staging
    if attempt.pays_restart:
        at_work -= s.restart[attempt.job]
    if at_work <= 0:
        return 0, 0
    interval = s.interval[attempt.job]
    if interval <= 0:
        return at_work, 0
    cycle = interval + writing_seconds(s, attempt.job, attempt.pool)
    cycles = at_work // cycle
    saved = cycles * interval
    into = at_work - cycles * cycle
    return saved + (into if into < interval else interval), saved


@jit
def _occupy(s: State, job: int, gpus: int) -> None:
    """Book GPUs to a running job, or, negative, take them back."""
    j = s.jobs[job]
    sp, shape = s.sps[j.sp], s.shapes[j.shape_id]
    p = sp.pool
    book(s, sp.row, gpus)
    row_changed(s, sp.row)
    s.pls[p * s.lanes.size + shape.lane].use += gpus
    s.projects[shape.project].held += gpus
    if s.rule[PLACEMENT] == SPREAD:
        s.domain_use[shape.project, s.pools[p].domain] += gpus
    lane_use_changed(s, shape.queue, gpus)
    pool_changed(s, p)
    # A start lets somebody in, too, where it makes a borrower to reclaim from.
    if gpus < 0 or s.rule[RECLAIMS] != RECLAIM_NEVER:
        pool_may_admit(s, p)


@jit
def start(s: State, job: int, i: int, now: int) -> None:
    """Begin an attempt of a waiting job in the pool of one of its shape's places."""
    j = s.jobs[job]
    p = s.sps[i].pool
    gpus = s.shapes[j.shape_id].gpus
    if s.rule[ORDER] == MULTIFACTOR:
        keep_score(s, job, s.st[ATTEMPTS], now)
    end_spell(s, job, now)
    leave(s, job)
    a = s.st[ATTEMPTS]
    s.st[ATTEMPTS] += 1
    attempt = s.attempts[a]
    attempt.job, attempt.pool, attempt.start, attempt.end = job, p, now, -1
    attempt.staging = staging(s, job, p)
    attempt.kept, attempt.by, attempt.ground = 0, -1, -1
    attempt.ended, attempt.staged = STILL_RUNNING, 0
    attempt.pays_restart = j.pays_restart
    attempt.prev = j.attempt
    attempt.number = 1 if j.attempt < 0 else s.attempts[j.attempt].number + 1
    j.attempt, j.state, j.sp, j.since, j.is_head = a, RUNNING, i, now, 0
    if j.first_start < 0:
        j.first_start = now
    before = attempt.staging + (s.restart[job] if j.pays_restart else 0)
    if s.st[COMPLETIONS] == s.completions.size:
        purge(s)
    push(s.completions, s.st[COMPLETIONS], now + _planned(s, job, p, before), a)
    s.st[COMPLETIONS] += 1
    take(s, p, job, gpus)
    pool = s.pools[p]
    j.prev, j.next = -1, pool.running
    if pool.running >= 0:
        s.jobs[pool.running].prev = job
    pool.running = job
    s.st[RUNNERS] += 1
    _occupy(s, job, gpus)


@jit
def _stop(s: State, job: int) -> None:
    j = s.jobs[job]
    p = s.sps[j.sp].pool
    gpus = s.shapes[j.shape_id].gpus
    give(s, p, job, gpus)
    if j.prev >= 0:
        s.jobs[j.prev].next = j.next
    else:
        s.pools[p].running = j.next
    if j.next >= 0:
        s.jobs[j.next].prev = j.prev
    s.st[RUNNERS] -= 1
    _occupy(s, job, -gpus)


@inlined
def complete(s: State, a: int, now: int) -> None:
    """End a job: all its work is done."""
    attempt = s.attempts[a]
    j = s.jobs[attempt.job]
    attempt.end, attempt.ended = now, DONE
    attempt.kept = s.work[attempt.job] - j.saved
    attempt.staged = attempt.staging > 0
    j.end, j.state = now, FINISHED
    _stop(s, attempt.job)


@jit
def recovery_of(s: State, job: int) -> int:
    """Say what an eviction, other than by an outage, means for the job."""
    j = s.jobs[job]
    lane = s.lanes[s.shapes[j.shape_id].lane]
    if lane.max_requeues >= 0 and j.evictions + 1 > lane.max_requeues:
        return CANCEL
    return lane.recovery


@jit
def would_lose(s: State, job: int, now: int) -> int:
    """Return the GPU-seconds of work that an eviction now would lose."""
    recovery = recovery_of(s, job)
    if recovery == SUSPEND:
        return 0
    j = s.jobs[job]
    done, saved = progress(s, j.attempt, now - j.since)
    if recovery == CANCEL:
        return s.shapes[j.shape_id].gpus * (j.saved + done)
    return s.shapes[j.shape_id].gpus * (done - saved)


@jit
def interrupt(
    s: State, job: int, now: int, recovery: int, ground: int, by: int, storage_lost: int
) -> None:
    """End an attempt before its time; `by` is a job, or for an outage the outage."""
    j = s.jobs[job]
    a = j.attempt
    attempt = s.attempts[a]
    gpus = s.shapes[j.shape_id].gpus
    elapsed = now - attempt.start
    done, saved = progress(s, a, elapsed)
    j.evictions += 1
    keeps = done if recovery == SUSPEND else saved
    loses_all = recovery == CANCEL or storage_lost != 0
    if loses_all:
        keeps = 0
    lost = gpus * (done - keeps)
    attempt.end, attempt.ended, attempt.kept, attempt.ground = now, EVICTED, keeps, ground
    attempt.staged = attempt.staging > 0 and elapsed >= attempt.staging
    if ground != OUTAGE:
        attempt.by = by
        j.preemptions += 1
    if loses_all:
        earlier = attempt.prev
        while earlier >= 0:
            lost += gpus * s.attempts[earlier].kept
            s.attempts[earlier].kept = 0
            earlier = s.attempts[earlier].prev
        j.saved = 0
    else:
        j.saved += keeps
    eviction = s.evictions[s.st[EVICTIONS]]
    eviction.lost, eviction.attempt = lost, a
    eviction.outage = by if ground == OUTAGE else -1
    s.st[EVICTIONS] += 1
    _stop(s, job)
    if recovery == CANCEL:
        j.state, j.end = CANCELLED, now
    else:
        j.state = SUSPENDED_STATE if recovery == SUSPEND else WAITING
        j.pays_restart = 0 if recovery == SUSPEND else 1
        j.since = now


@jit
def displace(s: State, job: int, now: int, ground: int, by: int) -> None:
    """Evict a job for another one, and let it wait or back off, unless that ends it."""
    recovery = recovery_of(s, job)
    interrupt(s, job, now, recovery, ground, by, 0)
    if recovery == CANCEL:
        return
    j = s.jobs[job]
    wait = 0
    if recovery == REQUEUE:
        lane = s.lanes[s.shapes[j.shape_id].lane]
        doublings = min(int(j.evictions) - 1, 40)
        wait = NEVER if lane.backoff > NEVER >> doublings else lane.backoff << doublings
        if 0 <= lane.backoff_limit < wait:
            wait = lane.backoff_limit
    if wait > 0:
        push(s.back_offs, s.st[BACK_OFFS], now + wait, job)
        s.st[BACK_OFFS] += 1
    else:
        # A job evicted in a pass is not looked at again in that pass: every pass ends.
        s.evicted[s.st[EVICTED_NOW]] = job
        s.st[EVICTED_NOW] += 1
