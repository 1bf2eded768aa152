"""A job's whole life: how long it waited for what, and how things stood when each wait began."""

from __future__ import annotations

from dataclasses import replace

from planner.description.record import Scenario
from planner.explanation.facts import Life, Moment, ReasonTotal, SpellFacts
from planner.explanation.moments import attempts_of, moment
from planner.explanation.watching import WAITS, Watched
from planner.vocabulary import Reason

SHOWN_SPELLS = 10  # the longest ones are shown with how things stood


class _Life(Watched):
    """A run that looks at one job each time that it begins to wait for another reason."""

    def __init__(self, scenario: Scenario, job: int) -> None:
        super().__init__(scenario)
        self.job = self.course(job)
        self.begun: dict[int, Moment] = {}  # by second
        self._last: tuple[int, Reason] | None = None

    def _pass(self) -> None:
        super()._pass()
        job = self.job
        if job.state not in WAITS or not self.has_arrived(job):
            return
        state = len(job.attempts), self.reason(job)
        if state != self._last:
            self._last = state
            self.begun[self.now] = replace(moment(self, job, self.now), since_seconds=self.now)


def live(scenario: Scenario, job: int) -> Life:
    """Follow one job, by its place in the file, through the whole run."""
    run = _Life(scenario, job)
    run.run()
    course = run.job
    longest = sorted(course.spells, key=lambda spell: (spell[0] - spell[1], spell[0]))
    totals: dict[Reason, int] = {}
    for start, end, reason in course.spells:
        totals[reason] = totals.get(reason, 0) + end - start
    waits = sorted(totals.items(), key=lambda total: -total[1])
    now = stopped_moment(run, job, run.now)
    return Life(
        job=now.job,
        now=now,
        total_wait_seconds=sum(totals.values()),
        waits=tuple(ReasonTotal(*total) for total in waits),
        spells=tuple(
            SpellFacts(*spell, run.begun[spell[0]] if place < SHOWN_SPELLS else None)
            for place, spell in enumerate(longest)
        ),
        attempts=attempts_of(run, course),
    )


def look(scenario: Scenario, job: int, at: int) -> Moment:
    """Look at one job, by its place in the file, at one second."""
    run = Watched(replace(scenario, horizon_seconds=at))
    run.run()
    return stopped_moment(run, job, at)


def stopped_moment(run: Watched, job: int, at: int) -> Moment:
    """Gather how a job stands in a run that has stopped, and since when it waits."""
    course = run.course(job)
    found = moment(run, course, at)
    if course.state not in WAITS or found.reason is None:
        return found
    # The spell that goes on was written down when the run stopped, unless it has just begun.
    since = at
    if course.spells and course.spells[-1][1:] == (at, found.reason):
        since = course.spells[-1][0]
    return replace(found, since_seconds=since)
