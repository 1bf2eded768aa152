"""A run of the reference engine that can be looked into while it goes on."""

from __future__ import annotations

from fractions import Fraction

from planner.description.record import Scenario
from planner.engine.courses import Course, Eviction, Score
from planner.engine.queues import FITS, REASON_AT, Queue, Shape
from planner.engine.reference import Run
from planner.engine.reservations import Reservations
from planner.vocabulary import Backfill, Ground, JobState, Reason

WAITS = (JobState.WAITING, JobState.SUSPENDED)


class Watched(Run):
    """A run that says what it sees: between its passes, or inside one before somebody starts."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario)
        self.passed_at = 0  # the instant of the latest pass
        self._by_position = {course.position: course for course in self.courses}
        self._evictions_of: dict[Course, list[Eviction]] = {}
        self._sorted_out = 0  # evictions
        self._just_evicted: set[Course] = set()  # by the latest pass

    def one_pass(self) -> None:
        """Make the pass of this instant, and forget whom the one before has evicted."""
        self.passed_at = self.now
        self._just_evicted.clear()
        super().one_pass()

    def displace(self, course: Course, ground: Ground, *, by: Course) -> None:
        """Evict a job for another one, and remember it till the next pass."""
        super().displace(course, ground, by=by)
        self._just_evicted.add(course)

    def course(self, position: int) -> Course:
        """Return the course of a job; one that the run leaves out never arrives."""
        found = self._by_position.get(position)
        if found is not None:
            return found
        job, columns = self.scenario.jobs[position], self.columns
        return Course(
            job,
            position=position,
            turn=len(self.courses),
            project=columns.project_number[job.project],
            lane=columns.lane_number[job.lane],
        )

    def has_arrived(self, course: Course) -> bool:
        """Say whether the job has been submitted by now."""
        return course.turn < self.arrived

    def evictions_of(self, course: Course) -> list[Eviction]:
        """List the evictions of a job so far."""
        for eviction in self.evictions[self._sorted_out :]:
            self._evictions_of.setdefault(eviction.victim, []).append(eviction)
        self._sorted_out = len(self.evictions)
        return self._evictions_of.get(course, [])

    def backs_off(self, course: Course) -> bool:
        """Say whether the job waits out its back-off."""
        return course.state in WAITS and course.phase_reason is Reason.BACKING_OFF

    def evicted_in_pass(self, course: Course) -> bool:
        """Say whether the latest pass has evicted the job, and so does not look at it again."""
        return course in self._just_evicted

    def shape(self, course: Course) -> Shape:
        """Return what the job shares with those that are refused together with it."""
        shape = self.room.shape_of[course.turn]
        assert shape is not None  # noqa: S101 - it waits, so it has been welcomed
        return shape

    def head_before(self, course: Course) -> Course | None:
        """Return the head of the strict line that the job is behind, if it is."""
        queue = self.shape(course).queue
        if not queue.strict or queue.head in (-1, course.turn):
            return None
        return self.courses[queue.head]

    def reason(self, course: Course) -> Reason:
        """Say why the job waits now, as the contract puts it: the furthest over its pools."""
        if course.state is JobState.SUSPENDED:
            return Reason.SUSPENDED
        if self.backs_off(course):
            return Reason.BACKING_OFF
        if self.head_before(course) is not None:
            return Reason.BEHIND_IN_QUEUE
        shape = self.shape(course)
        return REASON_AT[max(self.room.check(shape, pool) for pool in shape.pools)]

    def check(self, course: Course, pool: int) -> Reason | None:
        """Return the first check that fails in the pool; None where the job fits."""
        stage = self.room.check(self.shape(course), pool)
        return None if stage == FITS else REASON_AT[stage]

    def reservations(self) -> Reservations | None:
        """Return for whom the pools are kept; None without EASY backfill."""
        if self.scenario.policy.backfill is not Backfill.EASY:
            return None
        line = self.line(len(self.lanes_in_turn) - 1)
        return Reservations(self.occupancy, line, self.passed_at)

    def outage_of(self, pool: int, at: int) -> tuple[int, int] | None:
        """Return from when to when the pool is out around a second; outages may overlap."""
        hits = sorted(
            (outage.start_seconds, outage.start_seconds + outage.duration_seconds)
            for position, outage in enumerate(self.scenario.outages)
            if pool in self.struck(position)
        )
        around: tuple[int, int] | None = None
        for start, end in hits:
            if around is None or start > around[1]:
                if start > at:
                    break
                around = start, end
            else:
                around = around[0], max(around[1], end)
        return around if around is not None and at < around[1] else None

    # --- Order -------------------------------------------------------------------------------

    def terms(self, course: Course) -> Score | None:
        """Return the terms of the job's score now; None with an order that has no scores."""
        if self.scores is None:
            return None
        return self.scores.terms(course, self.shape(course).pools)

    def score(self, course: Course) -> float | None:
        """Return the job's score now, added up as the engine does."""
        return None if self.scores is None else self.score_of(course.turn)

    def share(self, project: int) -> int | float | None:
        """Return the project's dominant share in the engine's units; None: it plays no part."""
        return self.occupancy.shares.of(project) if self.fair else None

    def first_of(self, queue: Queue) -> Course:
        """Return the first waiting job of a project in a lane."""
        turn = queue.first if self.scores is None else self.heads(queue)[0][0]
        return self.courses[turn]

    def lane_place(self, lane: int) -> int:
        """Return the lane's place in a pass."""
        return self.lanes_in_turn.index(lane)

    def weight(self, project: int) -> Fraction:
        """Return what the project's share is divided by: its weight times its tenant's."""
        return self.columns.weights[project]
