"""Who waits, in which queue, and what the last look at them found.

Waiting jobs of one project, lane, size and set of pools are interchangeable when it comes to being
refused: whatever refuses the first refuses them all, and for the same reason. They share one
`Shape`, so that a long queue costs no more than a short one.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator
from decimal import Decimal
from math import inf

from planner.policy.placement import Share
from planner.trace import Attempt
from planner.vocabulary import JobState, Reason
from planner.work import Job

# How far a job got in a pool: the first check that fails. The furthest over its pools is the
# reason that people see; a job that fits but waits has been passed over by someone ahead of it.
OUT, LANE_LIMIT, QUOTA, BORROWING, CAPACITY, FRAGMENTED, FITS = range(7)
REASON_AT = (
    Reason.POOL_OUTAGE,
    Reason.LANE_LIMIT_REACHED,
    Reason.WAITING_FOR_QUOTA,
    Reason.BORROWING_LIMIT_REACHED,
    Reason.WAITING_FOR_CAPACITY,
    Reason.FRAGMENTED,
    Reason.BEHIND_IN_QUEUE,
)

Spell = tuple[int, int, Reason]  # from, to, why


class Course:
    """What happens to one job in the course of a run."""

    __slots__ = (
        "attempts",
        "end",
        "evictions",
        "first_start",
        "gpus",
        "job",
        "lane",
        "pays_restart",
        "phase_reason",
        "phase_start",
        "pool",
        "position",
        "preemptions",
        "project",
        "reason",
        "saved",
        "shape",
        "shares",
        "spells",
        "staged_gb",
        "staged_in",
        "state",
        "turn",
        "waits_for",
    )

    def __init__(self, job: Job, *, position: int, turn: int, project: int, lane: int) -> None:
        self.job = job
        self.gpus = job.gpus
        self.position = position  # place in the file
        self.turn = turn  # place by submit time, then by file
        self.project = project
        self.lane = lane
        self.shape: Shape  # set when the job is known to be schedulable
        self.state = JobState.WAITING
        self.saved = 0  # seconds of useful work that are done and kept
        self.evictions = 0
        self.preemptions = 0
        self.pays_restart = False
        self.staged_in: tuple[str, ...] = ()
        self.staged_gb = Decimal(0)
        self.first_start: int | None = None
        self.end: int | None = None
        self.pool = -1
        self.shares: list[Share] = []
        self.attempts: list[Attempt] = []
        self.reason: Reason | None = None  # why it can never run
        self.waits_for: Reason | None = None  # why it still waits when the run ends
        self.spells: list[Spell] = []
        self.phase_start = 0
        self.phase_reason: Reason | None = None  # None: whatever its shape's history says

    @property
    def attempt(self) -> Attempt:
        """Return the latest attempt."""
        return self.attempts[-1]

    def wait_on(self, now: int, reason: Reason | None) -> None:
        """Begin a new phase of waiting."""
        self.phase_start, self.phase_reason = now, reason

    def end_phase(self, now: int) -> None:
        """Write down why the job has waited since the phase began."""
        if now > self.phase_start:
            if self.phase_reason is None:
                self.spells.extend(self.shape.spells(self.phase_start, now))
            else:
                self.spells.append((self.phase_start, now, self.phase_reason))
        self.phase_start = now


class Shape:
    """The waiting jobs that share one refusal, and that refusal, pool by pool."""

    __slots__ = (
        "evict_from",
        "evict_from_in",
        "gpus",
        "history",
        "mask",
        "pools",
        "queue",
        "stage",
        "stages",
        "turns",
    )

    def __init__(self, queue: Queue, gpus: int, pools: tuple[int, ...]) -> None:
        self.queue = queue
        self.gpus = gpus
        self.pools = pools  # in listed order
        self.mask = sum(1 << pool for pool in pools)
        self.turns: list[int] = []  # of its waiting jobs, first one first
        self.stages = [OUT] * len(pools)
        self.stage = OUT
        # From which second on it is worth looking for victims (per pool, and the earliest).
        self.evict_from_in: list[float] = [inf] * len(pools)
        self.evict_from: float = inf
        self.history: list[tuple[int, Reason]] = []

    def note(self, now: int) -> None:
        """Keep what the pass has found, when it is something new."""
        reason = REASON_AT[self.stage]
        history = self.history
        if history and history[-1][0] == now:
            history.pop()
        if not history or history[-1][1] is not reason:
            history.append((now, reason))

    def spells(self, start: int, end: int) -> Iterator[Spell]:
        """Cut the history to one job's time of waiting."""
        history = self.history
        at = bisect_right(history, start, key=lambda change: change[0]) - 1
        while at < len(history) and history[at][0] < end:
            since, reason = history[at]
            until = history[at + 1][0] if at + 1 < len(history) else end
            yield max(since, start), min(until, end), reason
            at += 1


class Queue:
    """The waiting jobs of one project in one lane, in the order in which they are tried."""

    __slots__ = ("held", "lane", "limit", "noted", "open", "project", "strict", "turns")

    def __init__(self, project: int, lane: int, *, strict: bool, limit: int) -> None:
        self.project = project
        self.lane = lane
        self.strict = strict
        self.limit = limit  # assignment.max_gpus
        self.held = 0  # GPUs the project holds in this lane, over all pools
        self.turns: list[int] = []  # strict only: all of them, in one line
        # Shapes of which a job may be tried: all of them, or in a strict queue the first job's.
        self.open: list[Shape] = []
        self.noted: Course | None = None  # strict only: the head as the last pass left it

    def add(self, course: Course, courses: list[Course]) -> list[Shape]:
        """Let a job wait; return the shapes that are looked at from now on."""
        if not self.strict:
            shape = course.shape
            insort(shape.turns, course.turn)
            if len(shape.turns) > 1:
                return []
            self.open.append(shape)
            return [shape]
        insort(self.turns, course.turn)
        return self._reopen(courses)

    def remove(self, course: Course, courses: list[Course]) -> tuple[list[Shape], list[Shape]]:
        """Take the first job of a shape out; return the shapes that close and that open."""
        if not self.strict:
            shape = course.shape
            del shape.turns[0]
            if shape.turns:
                return [], []
            self.open.remove(shape)
            return [shape], []
        del self.turns[0]
        closed = self.open[:]
        opened = self._reopen(courses)
        return [shape for shape in closed if shape not in self.open], opened

    def _reopen(self, courses: list[Course]) -> list[Shape]:
        before = self.open
        self.open = [courses[self.turns[0]].shape] if self.turns else []
        return [shape for shape in self.open if shape not in before]

    @property
    def first(self) -> int:
        """Return the turn of the first waiting job."""
        if self.strict:
            return self.turns[0]
        return min(shape.turns[0] for shape in self.open)

    def heads(self) -> list[tuple[int, Shape]]:
        """List the first job of each shape that may be tried, in order."""
        if self.strict:
            return [(self.turns[0], self.open[0])]
        heads = [(shape.turns[0], shape) for shape in self.open]
        if len(heads) > 1:
            heads.sort(key=lambda head: head[0])
        return heads
