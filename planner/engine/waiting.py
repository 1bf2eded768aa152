"""The waiting room: the queues, what refuses the jobs in them, and the reasons people are given.

One shortcut is taken, the one the contract names: what refused a shape is remembered, and looked
at again only when something in its pools, or its project's use of the lane, has changed.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from math import inf

from planner.engine.columns import Columns
from planner.engine.courses import Course
from planner.engine.occupancy import Occupancy
from planner.engine.queues import (
    BORROWING,
    CAPACITY,
    FITS,
    FRAGMENTED,
    LANE_LIMIT,
    OUT,
    QUOTA,
    REASON_AT,
    Queue,
    Shape,
)
from planner.policy.quota import UNLIMITED
from planner.vocabulary import JobState, Queueing, Reason, Reclaim


class WaitingRoom:
    """Everybody who waits, and why."""

    def __init__(self, columns: Columns, occupancy: Occupancy, courses: list[Course]) -> None:
        self.columns = columns
        self.occupancy = occupancy
        self.courses = courses
        self.in_lane: list[dict[Queue, None]] = [{} for _ in columns.scenario.lanes]
        self.shape_of: list[Shape | None] = [None] * len(courses)  # by turn
        self._queues: dict[tuple[int, int], Queue] = {}
        self._shapes: dict[object, Shape] = {}
        self._active: dict[Shape, None] = {}  # the open shapes of all queues
        self._rechecked: dict[Shape, None] = {}
        self.score_of: Callable[[int], float] | None = None  # by turn, with order = "multifactor"

    # --- Coming and going --------------------------------------------------------------------

    def welcome(self, course: Course, pools: tuple[int, ...]) -> None:
        """Find the shape of a new job."""
        queue = self._queue(course)
        key = self.shape_key(course, pools)
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = Shape(queue, course.gpus, pools)
        self.shape_of[course.turn] = shape
        course.history = shape.spells

    def shape_key(self, course: Course, pools: tuple[int, ...]) -> object:
        """Return what jobs must have in common to be interchangeable."""
        return course.project, course.lane, course.gpus, pools

    def _queue(self, course: Course) -> Queue:
        key = (course.project, course.lane)
        queue = self._queues.get(key)
        if queue is None:
            strict = self.columns.scenario.lanes[course.lane].queueing is Queueing.STRICT
            limit = self.columns.lane_limit(*key)
            queue = self._queues[key] = Queue(*key, strict=strict, limit=limit)
        return queue

    def enter(self, course: Course, now: int) -> None:
        """Let a job wait from now on."""
        shape = self.shape_of[course.turn]
        assert shape is not None  # noqa: S101 - it has been welcomed
        queue = shape.queue
        self.in_lane[course.lane][queue] = None
        if queue.strict:
            insort(queue.turns, course.turn)
            self._reopen(queue)
        else:
            queue.add(course.turn, shape)
            if shape not in self._active:
                self._open(shape)
        reason: Reason | None = None
        if course.state is JobState.SUSPENDED:
            reason = Reason.SUSPENDED
        elif queue.strict:
            reason = Reason.BEHIND_IN_QUEUE  # until a pass finds it at the head
        course.wait_on(now, reason)

    def leave(self, course: Course, shape: Shape) -> None:
        """Take a job out: it starts."""
        queue = shape.queue
        if queue.strict:
            queue.turns.remove(course.turn)
            self._reopen(queue)
        else:
            queue.remove(course.turn, shape)
            if not shape.turns:
                del self._active[shape]
        if not queue.open:
            del self.in_lane[queue.lane][queue]

    def look_for_heads(self) -> None:
        """Look who is the head of each line at this instant, where that goes by score."""
        for queues in self.in_lane:
            for queue in queues:
                if queue.strict:
                    self._reopen(queue)

    def _reopen(self, queue: Queue) -> None:
        before = queue.open
        queue.reopen(self.shape_of, self.score_of)
        if before != queue.open:
            for shape in before:
                del self._active[shape]
            for shape in queue.open:
                self._open(shape)

    def _open(self, shape: Shape) -> None:
        shape.history.clear()  # nobody waits who would ask for it
        self._active[shape] = None
        self._recheck(shape, shape.mask)

    # --- What refuses a job ------------------------------------------------------------------

    def look_again(self) -> None:
        """Look again at the shapes whose pools, or whose use of the lane, have changed."""
        occupancy = self.occupancy
        changed = occupancy.changed_pools
        if not changed:
            return
        occupancy.changed_pools = 0
        for shape in self._active:
            if shape.mask & changed:
                self._recheck(shape, changed)
        for key in occupancy.changed_lanes:
            queue = self._queues[key]
            if queue.limit < UNLIMITED:
                for shape in queue.open:
                    self._recheck(shape, shape.mask)
        occupancy.changed_lanes.clear()

    def _recheck(self, shape: Shape, pools: int) -> None:
        """Find the first check that fails in each of these pools, and the furthest over all."""
        for at, pool in enumerate(shape.pools):
            if pools >> pool & 1:
                stage = shape.stages[at] = self.check(shape, pool)
                worth = LANE_LIMIT < stage < FITS and self._may_evict(shape, pool)
                shape.evict_from_in[at] = 0 if worth else inf
        shape.stage = max(shape.stages)
        shape.evict_from = min(shape.evict_from_in)
        self._rechecked[shape] = None

    def check(self, shape: Shape, pool: int) -> int:
        """Return the first check that fails: outage, lane limit, quota, GPUs, nodes."""
        occupancy = self.occupancy
        if occupancy.outages[pool]:
            return OUT
        queue, gpus = shape.queue, shape.gpus
        project = queue.project
        if occupancy.project_lane_use[project][queue.lane] + gpus > queue.limit:
            return LANE_LIMIT
        accounts = occupancy.accounts[pool]
        if not accounts.below_ceiling(project, gpus):
            return BORROWING
        if gpus > accounts.available(project):
            return QUOTA
        nodes = occupancy.nodes[pool]
        if gpus > nodes.free_gpus:
            return CAPACITY
        return FITS if nodes.fits(gpus) else FRAGMENTED

    def _may_evict(self, shape: Shape, pool: int) -> bool:
        """Rule out, by counting alone, pools in which nobody would be found."""
        rights = self.columns.rights[shape.queue.lane]
        if not rights.any:
            return False
        project, accounts = shape.queue.project, self.occupancy.accounts[pool]
        within = accounts.within_nominal(project, shape.gpus)
        if within and rights.reclaim is not Reclaim.NEVER and accounts.borrowers:
            return True
        use = self.occupancy.lane_use[pool]
        reachable = sum(use[lane] for lane in rights.preempts)
        if not within:
            reachable = min(reachable, accounts.usage[project])
        return reachable > 0 and self.occupancy.nodes[pool].free_gpus + reachable >= shape.gpus

    # --- Reasons -----------------------------------------------------------------------------

    def note_reasons(self, now: int) -> None:
        """Keep why each job still waits, as the pass that ends now has found it."""
        self.look_again()
        for shape in self._rechecked:
            if shape in self._active and not shape.queue.strict:
                shape.note(now)
        self._rechecked.clear()
        for queues in self.in_lane:
            for queue in queues:
                if queue.strict:
                    self._note_head(queue, now)

    def _note_head(self, queue: Queue, now: int) -> None:
        head, before = self.courses[queue.head], queue.noted
        if (
            before is not None
            and before is not head
            and before.state is JobState.WAITING
            and before.phase_reason is not Reason.BACKING_OFF
        ):
            self._change_reason(before, Reason.BEHIND_IN_QUEUE, now)
        queue.noted = head
        if head.state is JobState.WAITING:
            self._change_reason(head, REASON_AT[queue.open[0].stage], now)

    def _change_reason(self, course: Course, reason: Reason, now: int) -> None:
        if course.phase_reason is not reason:
            course.end_phase(now)
            course.wait_on(now, reason)
