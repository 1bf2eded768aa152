"""What the kernel works on: records of whole numbers, and the codes that stand in them.

Everything is a row of an array, and rows point to each other by number; -1 points nowhere. The
kernel allocates nothing, so that it needs no reference counting (which would cost it a factor of
five); where a record of the run may grow, it stops before an instant and asks for more room.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple

import numba
import numpy as np
from numba import types

# No reference counting, and no check whether a divisor is 0: none is.
OPTIONS: dict[str, Any] = {"_nrt": False, "error_model": "numpy"}
_CALLED_FROM_WITHIN: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def jit(function: Callable[..., Any], **more: Any) -> Any:
    """Compile a function of the kernel, once, for 64-bit whole numbers.

    Without the "runtime" there is no reference counting, and no allocation; without a cache of its
    own a function is compiled into whoever calls it. Only the entry point is cached.
    """
    compiled = numba.njit(**OPTIONS, **_CALLED_FROM_WITHIN, **more)(function)
    if hasattr(compiled, "get_call_template"):
        resolve = compiled.get_call_template

        def widened(args: Sequence[Any], names: dict[str, Any]) -> Any:
            # Else Numba compiles another version for every width, and every literal, it is called
            # with on the way to finding out the types: twice the time.
            return resolve(tuple(_wide(kind) for kind in args), names)

        compiled.get_call_template = widened
    return compiled


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a function into its callers: for those that have one or two, and run for each job.

    Together that is a tenth of a run. What the entry point calls is not worth it: it doubles the
    time to compile.
    """
    return jit(function, forceinline=True)


def _wide(kind: Any) -> Any:
    kind = types.unliteral(kind)  # type: ignore[no-untyped-call]
    return types.int64 if isinstance(kind, types.Integer | types.Boolean) else kind


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
    SOURCES,
    STAMP,
    SCALARS,
) = range(29)

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
    RULES,
) = range(9)


# Weights and constants of the multifactor score, by place in `multifactor`.
AGE, FAIR, SIZE, LANE_RANK, MAX_AGE, HALF_LIFE, FACTORS = range(7)


def _record(whole: str, decimal: str = "") -> np.dtype[Any]:
    names = [(name, "i8") for name in whole.split()] + [(name, "f8") for name in decimal.split()]
    return np.dtype(names, align=True)


def _packed(**fields: str) -> np.dtype[Any]:
    """Make a record of which there is one for each job, so that every byte counts."""
    names = [(name, kind) for kind, text in fields.items() for name in text.split()]
    return np.dtype(names, align=True)


# Whole numbers are 64 bits wide wherever there are few of them: one width, one compiled version
# of each function.
SHAPE = _record(
    "gpus queue project lane kin sp_lo sp_hi first last active_at candidate fresh", "size_ratio"
)
SP = _record("version ask_from pool shape_id row bucket member_at")
BUCKET = _record("gpus lo n pl active_at")
KIN = _record("gpus n kp_lo kp_hi log touched entered asked fits")
KP = _record("pool kin row queue size_at member_at stage")
SIZED = _record("gpus pool lo n active_at physical")
PL = _record("use lo n")  # a lane in a pool
ROW = _record("nominal guaranteed ceiling usage noted num den project pool cohort changed")
LIMITED = _record("kp_lo kp_hi")
COHORT = _record("capacity used noted_room most_guaranteed")
PROJECT = _record(
    "share_num share_den held row_lo row_hi queue_lo queue_hi stale",
    "usage normalised_share fair",
)
QUEUE = _record(
    """limit use noted_use project lane active_lo n_active line_first line_last first head
    noted_head lane_at strict line changed released head_changed"""
)
LANE = _record(
    """rank protect backoff backoff_limit max_requeues ask_from queue_lo n waiting recovery rights
    strict""",
    "rank_ratio",
)
POOL = _record(
    """gpus free version word_lo hold_first hold_gpus reserved_at spare size_lo n_sizes per_node
    nodes words count_lo node_lo out noted_out domain region storage cohort_lo cohort_hi borrowers
    running hold_lane hold_turn changed to_note reserved"""
)
EVENT = _record("time what")
OUTAGE_EVENT = _record("time outage begins")
STRUCK = _record("pool storage_lost")
CANDIDATE = _record("rank choice gpus job row borrower_last ground")

JOB = _packed(
    i8="first_start end saved since shape_id sp",
    i4="attempt next prev log node rest evictions preemptions",
    i1="state reason pays_restart is_head",
)
ATTEMPT = _packed(
    i8="start end staging kept",
    i4="job pool by number prev",
    i1="ended ground pays_restart staged",
)
SPELL = _packed(i8="start end", i4="job ref")
CHANGE = _packed(i8="time", i4="next", i1="reason")
EVICTION = _packed(i8="lost", i4="attempt outage")

I8, I4, I1 = np.dtype(np.int64), np.dtype(np.int32), np.dtype(np.int8)
F8, U8 = np.dtype(np.float64), np.dtype(np.uint64)


class State(NamedTuple):
    """All arrays of a run. The jobs' input is shared with the scenario and never written."""

    st: Annotated[Any, I8, 1]
    rule: Annotated[Any, I8, 1]
    submit: Annotated[Any, I8, 1]
    work: Annotated[Any, I8, 1]
    limit: Annotated[Any, I8, 1]
    interval: Annotated[Any, I8, 1]
    restart: Annotated[Any, I8, 1]
    kind: Annotated[Any, I4, 1]
    order: Annotated[Any, I4, 1]  # jobs by turn
    turn: Annotated[Any, I4, 1]  # turns by job
    staging_seconds: Annotated[Any, I8, 2]  # kind x region
    write_seconds: Annotated[Any, I8, 2]  # kind x storage
    at_home: Annotated[Any, I1, 2]  # kind x region
    multifactor: Annotated[Any, F8, 1]  # weights and constants of the score
    jobs: Annotated[Any, JOB, 1]
    shapes: Annotated[Any, SHAPE, 1]
    sps: Annotated[Any, SP, 1]  # a shape in one of its pools
    buckets: Annotated[Any, BUCKET, 1]  # the waiting shapes of one size, in a lane and a pool
    members: Annotated[Any, I8, 1]
    kins: Annotated[Any, KIN, 1]  # shapes that wait for the same reason whatever happens
    kps: Annotated[Any, KP, 1]  # kin in one of its pools
    sizes: Annotated[Any, SIZED, 1]  # the waiting kin of one size, in a pool
    size_members: Annotated[Any, I8, 1]
    active_sizes: Annotated[Any, I8, 1]
    limited_rows: Annotated[Any, LIMITED, 1]  # by row: the kin that its own use concerns
    limited_queues: Annotated[Any, LIMITED, 1]  # by queue: the kin that its lane limit concerns
    limited: Annotated[Any, I8, 1]
    pls: Annotated[Any, PL, 1]
    active_buckets: Annotated[Any, I8, 1]
    rows: Annotated[Any, ROW, 1]
    cohorts: Annotated[Any, COHORT, 1]
    projects: Annotated[Any, PROJECT, 1]
    queues: Annotated[Any, QUEUE, 1]
    active_shapes: Annotated[Any, I8, 1]
    lanes: Annotated[Any, LANE, 1]
    lane_order: Annotated[Any, I8, 1]
    lane_queues: Annotated[Any, I8, 1]
    preempts: Annotated[Any, I1, 2]
    pools: Annotated[Any, POOL, 1]
    words: Annotated[Any, U8, 1]  # which nodes have how much free: bits by pool and level
    counts: Annotated[Any, I8, 1]  # how many nodes have how much free
    node_free: Annotated[Any, I8, 1]
    node_next: Annotated[Any, I8, 1]
    domain_use: Annotated[Any, I8, 2]
    outage_events: Annotated[Any, OUTAGE_EVENT, 1]
    struck: Annotated[Any, STRUCK, 1]
    struck_lo: Annotated[Any, I8, 1]
    completions: Annotated[Any, EVENT, 1]
    back_offs: Annotated[Any, EVENT, 1]
    attempts: Annotated[Any, ATTEMPT, 1]
    scores: Annotated[Any, F8, 2]
    spells: Annotated[Any, SPELL, 1]
    log: Annotated[Any, CHANGE, 1]
    evictions: Annotated[Any, EVICTION, 1]
    changed: Annotated[Any, I8, 1]  # pools that may let somebody in
    to_note: Annotated[Any, I8, 1]  # pools whose reasons have to be looked at
    fresh: Annotated[Any, I8, 1]
    entered: Annotated[Any, I8, 1]
    touched: Annotated[Any, I8, 1]
    candidates: Annotated[Any, I8, 1]
    released: Annotated[Any, I8, 1]
    note_queues: Annotated[Any, I8, 1]
    note_heads: Annotated[Any, I8, 1]
    note_rows: Annotated[Any, I8, 1]
    evicted: Annotated[Any, I8, 1]
    running_candidates: Annotated[Any, CANDIDATE, 1]
    chosen: Annotated[Any, I8, 1]
    pool_order: Annotated[Any, I8, 1]
