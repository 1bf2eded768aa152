"""What a run leaves behind: flat records of jobs, attempts, spells of waiting, and evictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pandas as pd

from planner.description.record import Scenario
from planner.vocabulary import AttemptEnd, Ground, JobState

if TYPE_CHECKING:
    from planner.engine.courses import Course

_SPLIT = ("useful", "lost", "checkpoint", "restart", "staging")


@dataclass(slots=True)
class Attempt:
    """One attempt as the engine keeps it: seconds planned, then GPU-seconds spent."""

    job: int  # position in the file
    number: int
    pool: int
    start: int
    staging: int
    restart: int
    write: int
    end: int | None = None
    ended: AttemptEnd = AttemptEnd.RUNNING
    by: int | None = None
    ground: Ground | None = None
    staging_gpu: int = 0
    restart_gpu: int = 0
    checkpoint_gpu: int = 0
    useful_gpu: int = 0
    lost_gpu: int = 0


@dataclass(frozen=True, slots=True)
class Eviction:
    """Who was evicted when, for whom, on what ground, and what it cost."""

    at: int
    victim: Course
    preemptor: Course | None
    ground: Ground
    pool: int
    lost: int


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """The records of one run. Times are seconds from the start; absent values are null.

    `jobs`: one row per job, in file order (jobs submitted after the horizon are left out);
    `reason` says why a job can never run, `waiting_reason` why it still waits at the end.
    `attempts`: one row per attempt. `spells`: waiting by reason; they add up to a job's total
    wait. `evictions`: one row each. `end_seconds` is the horizon, or the last event's instant.
    """

    scenario: Scenario
    end_seconds: int
    _courses: Sequence[Course]  # in file order
    _evictions: Sequence[Eviction]

    # A frame is made when it is first asked for: a comparison looks at the jobs only.

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """Return one row per job, in file order."""
        return _jobs(self.scenario, self._courses)

    @cached_property
    def attempts(self) -> pd.DataFrame:
        """Return one row per attempt, by job and number."""
        return _attempts(self.scenario, self._courses)

    @cached_property
    def spells(self) -> pd.DataFrame:
        """Return one row per spell of waiting for one reason, by job and time."""
        return _spells(self._courses)

    @cached_property
    def evictions(self) -> pd.DataFrame:
        """Return one row per eviction, by time."""
        return _evictions(self.scenario, self._evictions)

    def __getstate__(self) -> dict[str, object]:
        """Pickle the frames, and not the engine's own records they are made of."""
        for name in ("jobs", "attempts", "spells", "evictions"):
            getattr(self, name)
        return self.__dict__ | {"_courses": (), "_evictions": ()}


def record(
    scenario: Scenario, courses: Sequence[Course], evictions: Sequence[Eviction], end_seconds: int
) -> Trace:
    """Write the records of a run that has ended."""
    in_file_order = sorted(courses, key=lambda course: course.position)
    return Trace(scenario, end_seconds, in_file_order, evictions)


def _frame(columns: dict[str, tuple[str, list[Any]]]) -> pd.DataFrame:
    return pd.DataFrame(
        {name: pd.Series(values, dtype=dtype) for name, (dtype, values) in columns.items()}
    )


def _jobs(scenario: Scenario, courses: Sequence[Course]) -> pd.DataFrame:
    tenant_of = {project.name: project.tenant for project in scenario.projects}
    starts = [course.first_start for course in courses]
    schedulable = [course.state is not JobState.UNSCHEDULABLE for course in courses]
    split = {
        f"{part}_gpu_seconds": (
            "int64",
            [sum(getattr(a, f"{part}_gpu") for a in course.attempts) for course in courses],
        )
        for part in _SPLIT
    }
    return _frame(
        {
            "id": ("str", [course.job.id for course in courses]),
            "project": ("str", [course.job.project for course in courses]),
            "tenant": ("str", [tenant_of[course.job.project] for course in courses]),
            "lane": ("str", [course.job.lane for course in courses]),
            "gpus": ("int64", [course.gpus for course in courses]),
            "submit_seconds": ("int64", [course.job.submit_seconds for course in courses]),
            "state": ("str", [course.state.value for course in courses]),
            "first_start_seconds": ("Int64", starts),
            "end_seconds": ("Int64", [course.end for course in courses]),
            "wait_seconds": (
                "Int64",
                [
                    None if start is None else start - course.job.submit_seconds
                    for start, course in zip(starts, courses, strict=True)
                ],
            ),
            "total_wait_seconds": (
                "Int64",
                [
                    sum(end - start for start, end, _ in course.spells) if waits else None
                    for waits, course in zip(schedulable, courses, strict=True)
                ],
            ),
            "attempts": ("int64", [len(course.attempts) for course in courses]),
            "preemptions": ("int64", [course.preemptions for course in courses]),
            "pool": (
                "str",
                [scenario.pools[c.pool].name if c.attempts else None for c in courses],
            ),
            **split,
            "staged_gb": ("float64", [float(course.staged_gb) for course in courses]),
            "reason": ("str", [c.reason.value if c.reason else None for c in courses]),
            "waiting_reason": (
                "str",
                [c.waits_for.value if c.waits_for else None for c in courses],
            ),
        }
    )


def _attempts(scenario: Scenario, courses: Sequence[Course]) -> pd.DataFrame:
    pairs = [(course, attempt) for course in courses for attempt in course.attempts]
    jobs = scenario.jobs
    return _frame(
        {
            "job": ("str", [course.job.id for course, _ in pairs]),
            "attempt": ("int64", [a.number for _, a in pairs]),
            "pool": ("str", [scenario.pools[a.pool].name for _, a in pairs]),
            "start_seconds": ("int64", [a.start for _, a in pairs]),
            "end_seconds": ("Int64", [a.end for _, a in pairs]),
            "ended": ("str", [a.ended.value for _, a in pairs]),
            "by_job": ("str", [None if a.by is None else jobs[a.by].id for _, a in pairs]),
            "ground": ("str", [a.ground.value if a.ground else None for _, a in pairs]),
            "staging_seconds": ("int64", [a.staging for _, a in pairs]),
            "restart_seconds": ("int64", [a.restart for _, a in pairs]),
            **{
                f"{part}_gpu_seconds": ("int64", [getattr(a, f"{part}_gpu") for _, a in pairs])
                for part in _SPLIT
            },
        }
    )


def _spells(courses: Sequence[Course]) -> pd.DataFrame:
    rows = [(course.job.id, *spell) for course in courses for spell in course.spells]
    return _frame(
        {
            "job": ("str", [row[0] for row in rows]),
            "start_seconds": ("int64", [row[1] for row in rows]),
            "end_seconds": ("int64", [row[2] for row in rows]),
            "reason": ("str", [row[3].value for row in rows]),
        }
    )


def _evictions(scenario: Scenario, evictions: Sequence[Eviction]) -> pd.DataFrame:
    victims = [eviction.victim.job for eviction in evictions]
    others = [e.preemptor.job if e.preemptor else None for e in evictions]
    return _frame(
        {
            "at_seconds": ("int64", [eviction.at for eviction in evictions]),
            "victim": ("str", [job.id for job in victims]),
            "victim_project": ("str", [job.project for job in victims]),
            "victim_lane": ("str", [job.lane for job in victims]),
            "preemptor": ("str", [job.id if job else None for job in others]),
            "preemptor_project": ("str", [job.project if job else None for job in others]),
            "preemptor_lane": ("str", [job.lane if job else None for job in others]),
            "ground": ("str", [eviction.ground.value for eviction in evictions]),
            "pool": ("str", [scenario.pools[eviction.pool].name for eviction in evictions]),
            "lost_gpu_seconds": ("int64", [eviction.lost for eviction in evictions]),
        }
    )
