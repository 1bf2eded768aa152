"""What the kernel works on: records of whole numbers, and the codes that stand in them.

Everything is a row of an array, and rows point to each other by number; -1 points nowhere. The
kernel allocates nothing, so that it needs no reference counting (which would cost it a factor of
five); where a record of the run may grow, it stops before an instant and asks for more room.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

# Without the "runtime" there is no reference counting, and no allocation; without a cache of its
# own a function is compiled into whoever calls it. Only the entry point is cached.
jit = numba.njit(_nrt=False)

NEVER = 1 << 61  # later than any second of a run

# Why a job is refused in a pool: the first check that fails, the furthest last.
OUT, LANE_LIMIT, QUOTA, BORROWING, CAPACITY, FRAGMENTED, FITS = range(7)
# Why a job waits, beyond these.
BEHIND, BACKING_OFF, SUSPENDED = 6, 7, 8

WAITING, RUNNING, FINISHED, CANCELLED, UNSCHEDULABLE, SUSPENDED_STATE, NOT_YET = range(7)
EVICTED, STILL_RUNNING, DONE = range(3)  # how an attempt ended
PREEMPTION, RECLAIM, OUTAGE = range(3)
REQUEUE, SUSPEND, CANCEL = range(3)
FIFO, FAIR_SHARE, MULTIFACTOR = range(3)
LISTED, LOCALITY, PACK, SPREAD = range(4)
RECLAIM_NEVER, RECLAIM_LOWER_LANE, RECLAIM_ANY = range(3)

# What the kernel says when it returns.
ENDED, MORE_ROOM, TOO_LONG = range(3)

# Scalars of the run, by place in `st`.
(
    NOW,
    PHASE,
    ARRIVED,
    OUTAGES_DONE,
    COMPLETIONS,
    BACK_OFFS,
    ATTEMPTS,
    SPELLS,
    LOG,
    EVICTIONS,
    WAITERS,
    RUNNERS,
    CHANGED,
    TO_NOTE,
    FRESH,
    ENTERED,
    TOUCHED,
    CANDIDATES,
    RELEASED,
    NOTE_QUEUES,
    NOTE_HEADS,
    NOTE_ROWS,
    EVICTED_NOW,
    GATHER_AGAIN,
    EVENTS,
    LONGEST_QUEUE,
    SCALARS,
) = range(27)

# Constants of the run, by place in `rule`.
(
    ORDER,
    PLACEMENT,
    BY_LOSS,
    RECLAIMS,
    EASY,
    HORIZON,
    LAST_SECOND,
    LANES,
    REGIONS,
    DOMAINS,
    STORAGES,
    POOLS,
    JOBS,
    RULES,
) = range(14)


# Weights and constants of the multifactor score, by place in `multifactor`.
AGE, FAIR, SIZE, LANE_RANK, MAX_AGE, HALF_LIFE, FACTORS = range(7)


def _record(**fields: str) -> np.dtype[Any]:
    names = [(name, kind) for kind, text in fields.items() for name in text.split()]
    return np.dtype(names, align=True)


JOB = _record(
    i8="first_start end saved since",
    i4="shape sp attempt next prev log node rest evictions preemptions",
    i1="state reason pays_restart is_head",
)
SHAPE = _record(
    i8="gpus",
    f8="size_ratio",
    i4="queue project lane sp_lo sp_hi first last log active_at",
    i1="stage touched candidate fresh entered",
)
SP = _record(i8="version ask_from", i4="pool shape row bucket member_at", i1="stage")
BUCKET = _record(i8="gpus", i4="lo n pl active_at", i1="physical")
PL = _record(i8="use", i4="lo n")  # a lane in a pool
ROW = _record(
    i8="nominal guaranteed ceiling usage noted num den", i4="project pool cohort", i1="changed"
)
COHORT = _record(i8="capacity used noted_room most_guaranteed")
PROJECT = _record(
    i8="share_num share_den held",
    f8="usage normalised_share fair",
    i4="row_lo row_hi queue_lo queue_hi",
    i1="stale",
)
QUEUE = _record(
    i8="limit use noted_use",
    i4="project lane active_lo n_active line_first line_last first head noted_head lane_at",
    i1="strict line changed released head_changed",
)
LANE = _record(
    f8="rank_ratio",
    i8="rank protect backoff backoff_limit max_requeues ask_from",
    i4="queue_lo n waiting",
    i1="recovery rights strict",
)
POOL = _record(
    i8="gpus free version word_lo hold_first hold_gpus reserved_at spare",
    i4="""per_node nodes words count_lo node_lo out noted_out domain region storage cohort_lo
    cohort_hi borrowers running hold_lane hold_turn""",
    i1="changed to_note reserved",
)
EVENT = _record(i8="time", i4="what")
OUTAGE_EVENT = _record(i8="time", i4="outage", i1="begins")
STRUCK = _record(i4="pool", i1="storage_lost")
ATTEMPT = _record(
    i8="start end staging kept",
    i4="job pool by number prev",
    i1="ended ground pays_restart staged",
)
SPELL = _record(i8="start end", i4="job ref")
CHANGE = _record(i8="time", i4="next", i1="reason")
EVICTION = _record(i8="lost", i4="attempt outage")
CANDIDATE = _record(i8="rank choice gpus", i4="job row", i1="borrower_last ground")


class State(NamedTuple):
    """All arrays of a run. The jobs' input is shared with the scenario and never written."""

    st: Any
    rule: Any
    submit: Any
    work: Any
    limit: Any
    interval: Any
    restart: Any
    kind: Any
    order: Any  # jobs by turn
    turn: Any  # turns by job
    staging_seconds: Any  # kind x region
    write_seconds: Any  # kind x storage
    at_home: Any  # kind x region
    multifactor: Any  # weights and constants of the score
    jobs: Any
    shapes: Any
    sps: Any  # a shape in one of its pools
    buckets: Any  # the waiting shapes of one size, in a lane and a pool
    members: Any
    pls: Any
    active_buckets: Any
    rows: Any
    cohorts: Any
    projects: Any
    queues: Any
    active_shapes: Any
    lanes: Any
    lane_order: Any
    lane_queues: Any
    preempts: Any
    pools: Any
    words: Any  # which nodes have how much free: bits by pool and level
    counts: Any  # how many nodes have how much free
    node_free: Any
    node_next: Any
    domain_use: Any
    outage_events: Any
    struck: Any
    struck_lo: Any
    completions: Any
    back_offs: Any
    attempts: Any
    scores: Any
    spells: Any
    log: Any
    evictions: Any
    changed: Any  # pools that may let somebody in
    to_note: Any  # pools whose reasons have to be looked at
    fresh: Any
    entered: Any
    touched: Any
    candidates: Any
    released: Any
    note_queues: Any
    note_heads: Any
    note_rows: Any
    evicted: Any
    running_candidates: Any
    chosen: Any
    pool_order: Any
