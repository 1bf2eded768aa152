"""A job's whole life: how long it waited for what, and how things stood when each wait began."""

from __future__ import annotations

from dataclasses import replace

from planner.description.record import Scenario
from planner.explanation.facts import Life, Moment, ReasonTotal, SpellFacts
from planner.explanation.moments import attempts_of, moment, stopped_moment
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

    def one_pass(self) -> None:
        super().one_pass()
        job = self.job
        if job.state not in WAITS or not self.has_arrived(job):
            return
        state = len(job.attempts), self.reason(job)
        # One second may have several passes: a job without work ends in the second it starts.
        if state != self._last or self.now in self.begun:
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
    now = stopped_moment(run, course)
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
    return stopped_moment(run, run.course(job))
