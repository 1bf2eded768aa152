"""Which of two jobs goes first, and by what, as things stand when one of them is about to start."""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest

from planner.description.record import Scenario
from planner.engine.courses import Course
from planner.engine.queues import Shape
from planner.explanation.facts import (
    Decision,
    Place,
    Precedence,
    ScoreFacts,
    ShareFacts,
    Standing,
)
from planner.explanation.moments import about, displaced, moment, stopped_moment
from planner.explanation.watching import Watched
from planner.vocabulary import Ground

# When only one of the two was there to start.
_ALONE = {
    Standing.NOT_SUBMITTED: Decision.NOT_SUBMITTED,
    Standing.UNSCHEDULABLE: Decision.UNSCHEDULABLE,
    Standing.BACKING_OFF: Decision.BACKING_OFF,
    Standing.RUNNING: Decision.REVERSE,
    Standing.FINISHED: Decision.REVERSE,
    Standing.CANCELLED: Decision.REVERSE,
}
# When the other did not want to start, for the time being or for good.
NO_RIVAL = (Decision.NOT_SUBMITTED, Decision.UNSCHEDULABLE, Decision.REVERSE)

_Key = list[tuple[Decision, int | float]]  # the smaller goes first; by what the two are compared


class Contest(Watched):
    """A run that looks at two jobs each time that the first of them is about to start."""

    def __init__(self, scenario: Scenario, job: int, other: int) -> None:
        super().__init__(scenario)
        self.job, self.other = self.course(job), self.course(other)
        self.starts: list[Precedence] = []
        self._seen: Precedence | None = None  # before anybody is displaced for the job
        self._evictions_before = 0

    def displace(self, course: Course, ground: Ground, *, by: Course) -> None:
        """Look at the two before anybody is displaced for the first of them."""
        if by is self.job:
            self._look()
        super().displace(course, ground, by=by)

    def start(self, course: Course, shape: Shape, pool: int) -> None:
        """Keep how the two stood when the first of them starts."""
        if course is self.job:
            self._keep(self._look(), pool)
        super().start(course, shape, pool)

    def _look(self) -> Precedence:
        if self._seen is None:
            self._evictions_before = len(self.evictions)
            self._seen = self.compare(self.now)
        return self._seen

    def _keep(self, seen: Precedence, pool: int) -> None:
        victims = tuple(displaced(self, each) for each in self.evictions[self._evictions_before :])
        if seen.other.id in (victim.victim for victim in victims):
            seen = replace(seen, decision=Decision.DISPLACED)
        name = self.scenario.pools[pool].name
        self.starts.append(replace(seen, pool=name, displaced=victims))
        self._seen = None

    def compare(self, at: int) -> Precedence:
        """Compare the two as they stand now; the first has not started."""
        job, other = self.job, self.other
        own, its = moment(self, job, at), moment(self, other, at)
        by_order: Decision | None = None
        place = other_place = None
        if its.standing in _ALONE:
            decision = _ALONE[its.standing]
        elif its.evicted_in_pass:
            decision = Decision.JUST_EVICTED
        else:
            by_order, is_ahead = self._by_order()
            place, other_place = self._place(job), self._place(other)
            if is_ahead:
                decision = by_order
            elif its.ahead is not None:
                decision = Decision.BEHIND_HEAD
            elif any(pool.check is None for pool in its.pools):
                decision = Decision.TURN_OVER
            else:
                decision = Decision.REFUSED
        return Precedence(
            job=own.job,
            other=its.job,
            decision=decision,
            order=self.scenario.policy.order,
            at_seconds=at,
            attempt=len(job.attempts) + 1,
            pool=None,
            other_start_seconds=other.attempts[-1].start if other.attempts else None,
            by_order=by_order,
            place=place,
            other_place=other_place,
            moment=own,
            other_moment=its,
            displaced=(),
        )

    def _by_order(self) -> tuple[Decision, bool]:
        """Say by what the two are told apart, and whether the first job comes first."""
        for mine, its in zip_longest(self._key(self.job), self._key(self.other)):
            if mine[1] != its[1]:
                return mine[0], mine[1] < its[1]
        raise AssertionError("two jobs never stand in one place of the file")

    def _key(self, course: Course) -> _Key:
        """Return what a job's turn depends on, in the order of section 4 of the contract."""
        first = self.first_of(self.shape(course).queue)
        lane: _Key = [
            (Decision.LANE_RANK, -self.scenario.lanes[course.lane].rank),
            (Decision.LANE_PLACE, course.lane),
        ]
        submit: _Key = [
            (Decision.SUBMIT, course.job.submit_seconds),
            (Decision.FILE_PLACE, course.position),
        ]
        score, first_score = self.score(course), self.score(first)
        if score is not None and first_score is not None:
            return [
                *lane,
                (Decision.PROJECT_SCORE, -first_score),
                (Decision.FILE_PLACE, first.position),
                (Decision.SCORE, -score),
                *submit,
            ]
        share = self.share(course.project)
        return [
            *lane,
            *([] if share is None else [(Decision.SHARE, share)]),
            (Decision.PROJECT_SUBMIT, first.job.submit_seconds),
            (Decision.FILE_PLACE, first.position),
            *submit,
        ]

    def _place(self, course: Course) -> Place:
        first = self.first_of(self.shape(course).queue)
        return Place(
            rank=self.scenario.lanes[course.lane].rank,
            lane_row=course.lane + 1,
            first=about(first),
            share=None if self.share(course.project) is None else self._share(course.project),
            score=self._score(course),
            first_score=self._score(first),
        )

    def _share(self, project: int) -> ShareFacts:
        """Return the dominant share with the pool that makes it."""
        name, weight = self.scenario.projects[project].name, self.weight(project)
        largest = ShareFacts(name, 0.0, None, 0, 0, float(weight))
        for pool, accounts in zip(self.scenario.pools, self.occupancy.accounts, strict=True):
            borrowed = accounts.borrowed(project)
            if not accounts.has_row(project) or borrowed <= 0:
                continue
            capacity = accounts.capacity_for(project)
            share = float(borrowed / (capacity * weight)) if capacity and weight else None
            if largest.share is not None and (share is None or share > largest.share):
                largest = ShareFacts(name, share, pool.name, borrowed, capacity, float(weight))
        return largest

    def _score(self, course: Course) -> ScoreFacts | None:
        terms, score = self.terms(course), self.score(course)
        if terms is None or score is None:
            return None
        return ScoreFacts(course.job.id, score, *terms)


def decide(scenario: Scenario, job: int, other: int, *, at_seconds: int | None) -> Precedence:
    """Say why a job went before another: at its last start until a second, or in the whole run.

    In the whole run it is the first start at which the other wanted to start, too; without such
    a one the job's first start.
    """
    until = scenario.horizon_seconds if at_seconds is None else at_seconds
    run = Contest(replace(scenario, horizon_seconds=until), job, other)
    run.run()
    if not run.starts:
        return _not_started(run)
    if at_seconds is not None:
        return run.starts[-1]
    rivals = (start for start in run.starts if start.decision not in NO_RIVAL)
    return next(rivals, run.starts[0])


def _not_started(run: Contest) -> Precedence:
    """Say that the first job has not started, and whether the other has."""
    own, its = stopped_moment(run, run.job), stopped_moment(run, run.other)
    return Precedence(
        job=own.job,
        other=its.job,
        decision=Decision.REVERSE if run.other.attempts else Decision.NEVER_STARTED,
        order=run.scenario.policy.order,
        at_seconds=run.now,
        attempt=None,
        pool=None,
        other_start_seconds=run.other.attempts[-1].start if run.other.attempts else None,
        by_order=None,
        place=None,
        other_place=None,
        moment=own,
        other_moment=its,
        displaced=(),
    )
