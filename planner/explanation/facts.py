"""What an explanation rests on: numbers and names, ready for JSON, without a word of prose.

Times are seconds from the scenario's start. None is what does not exist: no limit, no end yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from planner.vocabulary import AttemptEnd, Ground, Order, Queueing, Reason, Reclaim


class Standing(StrEnum):
    """Where a job stands at one moment."""

    NOT_SUBMITTED = "not-submitted"
    UNSCHEDULABLE = "unschedulable"
    WAITING = "waiting"
    BACKING_OFF = "backing-off"
    SUSPENDED = "suspended"
    RUNNING = "running"
    FINISHED = "finished"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class About:
    """Whom an explanation is about."""

    id: str
    project: str
    lane: str
    gpus: int
    submit_seconds: int
    row: int  # place among the jobs of the file, from 1


@dataclass(frozen=True, slots=True)
class QuotaLine:
    """What quota gives a project in one pool, and what of it is in use, in GPUs."""

    nominal: int
    lending_limit: int | None
    guaranteed: int
    usage: int
    borrowed: int
    borrowing_limit: int | None
    ceiling: int | None  # nominal and borrowing limit together
    cohort: str
    cohort_capacity: int
    cohort_use: int
    available: int


@dataclass(frozen=True, slots=True)
class Holder:
    """The jobs of one project and lane that run in a pool; `since_seconds` is the first start."""

    project: str
    lane: str
    gpus: int
    jobs: int
    since_seconds: int


@dataclass(frozen=True, slots=True)
class Reserved:
    """For whom EASY backfill keeps a pool, and what it leaves to a job behind."""

    holder: str
    holder_gpus: int
    at_seconds: int  # from when on
    spare_gpus: int
    ends_seconds: int  # when the job behind would end, by its limit
    binds: bool  # whether it holds the job back


class Spared(StrEnum):
    """Why nobody was displaced in a pool for a job that may displace others."""

    NOBODY = "nobody"  # runs there whom the job may displace
    OVER_NOMINAL = "over-nominal"  # the job would borrow, and that displaces nobody else's
    PROTECTED = "protected"  # all that it may displace, for the time being
    NOT_ENOUGH = "not-enough"  # would come free


@dataclass(frozen=True, slots=True)
class Undisplaced:
    """Why nobody was displaced, and how many it would have been: in all, and protected ones."""

    why: Spared
    jobs: int
    gpus: int
    protected_jobs: int
    protected_until_seconds: int | None  # the first of them
    preempts: tuple[str, ...]  # lanes
    reclaim: Reclaim


@dataclass(frozen=True, slots=True)
class PoolFacts:
    """One pool as the job found it: the first check that failed there, and all the numbers."""

    pool: str
    check: Reason | None  # None: the job fitted
    gpus: int
    free_gpus: int
    nodes: int
    free_nodes: int  # wholly free ones
    gpus_per_node: int
    most_free_on_a_used_node: int
    quota: QuotaLine
    outage_since_seconds: int | None
    outage_until_seconds: int | None
    reserved: Reserved | None
    undisplaced: Undisplaced | None  # None: nobody could be looked for
    holders: tuple[Holder, ...]


@dataclass(frozen=True, slots=True)
class LaneFacts:
    """What the job's project holds in its lane over all pools, and its limit, in GPUs."""

    lane: str
    rank: int
    queueing: Queueing
    use: int
    limit: int | None


@dataclass(frozen=True, slots=True)
class Displaced:
    """One eviction: when, from where, for whom (None: an outage), and what work was lost."""

    at_seconds: int
    pool: str
    ground: Ground
    by: About | None
    victim: str
    lost_gpu_seconds: int


@dataclass(frozen=True, slots=True)
class Offer:
    """A pool that was left when a job that can never run was narrowed down to nothing."""

    pool: str
    region: str
    accelerator: str
    gpus: int
    most: int | None  # GPUs the project could ever hold there; None: it has no quota there


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What a job that can never run asked for, and what was left before the step that failed."""

    accelerator: str | None
    regions: tuple[str, ...]
    data_region: str | None
    lanes: tuple[str, ...]  # assigned to the project
    max_gpus: int | None  # of its assignment
    quota_pools: tuple[str, ...]  # pools the project has a quota row for
    allowed_pools: tuple[str, ...] | None  # by job and assignment; None: any
    left: tuple[Offer, ...]


@dataclass(frozen=True, slots=True)
class AttemptFacts:
    """One attempt; `end_seconds` is None while it runs."""

    number: int
    pool: str
    start_seconds: int
    end_seconds: int | None
    ended: AttemptEnd
    eviction: Displaced | None


@dataclass(frozen=True, slots=True)
class Moment:
    """Why a job stood as it did at one second, after the pass of the last instant until then."""

    job: About
    at_seconds: int
    passed_at_seconds: int  # when the pass was that left it so
    standing: Standing
    reason: Reason | None
    since_seconds: int | None  # since when it has waited for this reason
    waited_seconds: int  # in all, for whatever reason
    lane: LaneFacts
    pools: tuple[PoolFacts, ...]
    ahead: Moment | None  # the head of a strict line, when the job is behind it
    evicted_in_pass: bool  # a job evicted in a pass is not looked at again in it
    back_off_until_seconds: int | None
    evictions: int
    last_eviction: Displaced | None
    attempt: AttemptFacts | None
    end_seconds: int | None
    narrowing: Narrowing | None


@dataclass(frozen=True, slots=True)
class ReasonTotal:
    """How long the job has waited for one reason in all."""

    reason: Reason
    seconds: int


@dataclass(frozen=True, slots=True)
class SpellFacts:
    """One spell of waiting for one reason, and how things stood when it began."""

    start_seconds: int
    end_seconds: int
    reason: Reason
    moment: Moment | None  # None: left out, the spell is not among the longest


@dataclass(frozen=True, slots=True)
class Life:
    """A job from its submission to the end: how it waited, longest first, and how it ran."""

    job: About
    now: Moment  # as it stands at the end
    total_wait_seconds: int
    waits: tuple[ReasonTotal, ...]
    spells: tuple[SpellFacts, ...]
    attempts: tuple[AttemptFacts, ...]


class Decision(StrEnum):
    """What decided between two jobs."""

    LANE_RANK = "lane-rank"
    LANE_PLACE = "lane-place"
    SUBMIT = "submit"
    PROJECT_SUBMIT = "project-submit"
    SHARE = "share"
    SCORE = "score"
    PROJECT_SCORE = "project-score"
    FILE_PLACE = "file-place"
    REFUSED = "refused"
    BEHIND_HEAD = "behind-head"
    TURN_OVER = "turn-over"
    DISPLACED = "displaced"
    JUST_EVICTED = "just-evicted"
    BACKING_OFF = "backing-off"
    NOT_SUBMITTED = "not-submitted"
    UNSCHEDULABLE = "unschedulable"
    NEVER_STARTED = "never-started"
    REVERSE = "reverse"


@dataclass(frozen=True, slots=True)
class ShareFacts:
    """A project's dominant share: GPUs borrowed by capacity and weight, where that is largest."""

    project: str
    share: float | None  # None: infinite
    pool: str | None  # None: it borrows nowhere
    borrowed: int
    cohort_capacity: int
    weight: float


@dataclass(frozen=True, slots=True)
class ScoreFacts:
    """A multifactor score and its weighted terms."""

    job: str
    score: float
    age: float
    fair_share: float
    size: float
    lane: float


@dataclass(frozen=True, slots=True)
class Place:
    """What a job's turn depended on at the moment of the decision."""

    rank: int
    lane_row: int  # the lane's place in the file, from 1
    first: About  # the first waiting job of its project in its lane
    share: ShareFacts | None
    score: ScoreFacts | None
    first_score: ScoreFacts | None


@dataclass(frozen=True, slots=True)
class Precedence:
    """Why one job went before another, as things stood when it was about to start."""

    job: About
    other: About
    decision: Decision
    order: Order
    at_seconds: int  # of the decision; of the end, when there was none
    attempt: int | None  # of the job; None: it has not started
    pool: str | None
    other_start_seconds: int | None  # of the other's latest attempt until then
    by_order: Decision | None  # what puts one of the two ahead, when both waited
    place: Place | None
    other_place: Place | None
    moment: Moment  # how the job, and the other, stood when that was decided
    other_moment: Moment
    displaced: tuple[Displaced, ...]
