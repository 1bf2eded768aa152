"""Who waits, in the order in which they are tried.

Waiting jobs of one project, lane, size and set of pools are interchangeable when it comes to being
refused: whatever refuses the first refuses them all, and for the same reason. They share one
`Shape`, so that a long queue costs no more than a short one.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Iterator, Sequence
from math import inf

from planner.engine.courses import Course, Spell
from planner.vocabulary import Reason

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
        self.turns: list[int] = []  # of its waiting jobs, first one first (best-effort only)
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
    """The waiting jobs of one project in one lane."""

    __slots__ = ("head", "key", "lane", "limit", "noted", "open", "project", "strict", "turns")

    def __init__(self, project: int, lane: int, *, strict: bool, limit: int) -> None:
        self.key = (project, lane)
        self.project = project
        self.lane = lane
        self.strict = strict
        self.limit = limit  # assignment.max_gpus
        self.turns: list[int] = []  # strict only: all of them, in one line
        # Shapes of which a job may be tried: all that have one, or the one of the line's head.
        self.open: list[Shape] = []
        self.head = -1  # strict only: the turn of the job that is offered
        self.noted: Course | None = None  # strict only: the head, as the last pass left it

    def add(self, turn: int, shape: Shape) -> None:
        """Let a job wait (best-effort)."""
        insort(shape.turns, turn)
        if shape not in self.open:
            self.open.append(shape)

    def remove(self, turn: int, shape: Shape) -> None:
        """Take a job out (best-effort); it is nearly always its shape's first."""
        shape.turns.remove(turn)
        if not shape.turns:
            self.open.remove(shape)

    def reopen(
        self, shape_of: Sequence[Shape | None], score_of: Callable[[int], float] | None
    ) -> None:
        """Look who is the head of the line now (strict): by turn, or by score."""
        if not self.turns:
            self.head, self.open = -1, []
            return
        self.head = self.turns[0]
        if score_of is not None:
            self.head = min(self.turns, key=lambda turn: (-score_of(turn), turn))
        shape = shape_of[self.head]
        self.open = [] if shape is None else [shape]

    @property
    def first(self) -> int:
        """Return the turn of the first waiting job."""
        if self.strict:
            return self.turns[0]
        return min(shape.turns[0] for shape in self.open)

    def heads(self) -> list[tuple[int, Shape]]:
        """List the first job of each shape that may be tried, in order."""
        if self.strict:
            return [(self.head, self.open[0])]
        heads = [(shape.turns[0], shape) for shape in self.open]
        if len(heads) > 1:
            heads.sort(key=lambda head: head[0])
        return heads

    def line(self) -> list[tuple[int, Shape]]:
        """List all jobs that may be tried, in order of their turn."""
        if self.strict:
            return self.heads()
        return sorted(
            ((turn, shape) for shape in self.open for turn in shape.turns),
            key=lambda place: place[0],
        )
