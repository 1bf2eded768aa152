"""From the reference engine's courses to the records that every engine leaves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from planner.description.record import Scenario
from planner.engine.courses import Course, Eviction
from planner.trace import (
    ENDS,
    GROUNDS,
    PARTS,
    REASONS,
    STATES,
    AttemptRecords,
    EvictionRecords,
    JobRecords,
    Numbers,
    Records,
    SpellRecords,
    Trace,
)
from planner.vocabulary import Order


def record(
    scenario: Scenario, courses: Sequence[Course], evictions: Sequence[Eviction], end_seconds: int
) -> Trace:
    """Write the records of a run that has ended."""
    courses = sorted(courses, key=lambda course: course.position)
    waits = [sum(end - start for start, end, _ in course.spells) for course in courses]
    records = Records(
        jobs=_jobs(courses),
        attempts=_attempts(courses, scored=scenario.policy.order is Order.MULTIFACTOR),
        evictions=_evictions(evictions),
        total_wait=_numbers(waits),
        spells=_Spells(courses),
    )
    return Trace(scenario, end_seconds, records)


def _numbers(values: Iterable[int | None]) -> Numbers:
    return np.array([-1 if value is None else value for value in values], dtype=np.int64)


def _places(words: Sequence[Any], values: Iterable[Any]) -> Numbers:
    return np.array([-1 if v is None else words.index(v) for v in values], dtype=np.int8)


def _jobs(courses: Sequence[Course]) -> JobRecords:
    return JobRecords(
        position=_numbers(course.position for course in courses),
        state=_places(STATES, (course.state for course in courses)),
        first_start=_numbers(course.first_start for course in courses),
        end=_numbers(course.end for course in courses),
        preemptions=_numbers(course.preemptions for course in courses),
        reason=_places(REASONS, (course.reason for course in courses)),
        waiting_reason=_places(REASONS, (course.waits_for for course in courses)),
    )


def _attempts(courses: Sequence[Course], *, scored: bool) -> AttemptRecords:
    rows = [attempt for course in courses for attempt in course.attempts]
    split = [[getattr(row, f"{part}_gpu") for part in PARTS] for row in rows]
    scores = [row.score or (np.nan,) * 4 for row in rows] if scored else None
    return AttemptRecords(
        job=_numbers(row.job for row in rows),
        number=_numbers(row.number for row in rows),
        pool=_numbers(row.pool for row in rows),
        start=_numbers(row.start for row in rows),
        end=_numbers(row.end for row in rows),
        ended=_places(ENDS, (row.ended for row in rows)),
        by=_numbers(row.by for row in rows),
        ground=_places(GROUNDS, (row.ground for row in rows)),
        staging=_numbers(row.staging for row in rows),
        restart=_numbers(row.restart for row in rows),
        split=np.array(split, dtype=np.int64).reshape(len(rows), len(PARTS)),
        staged=np.array([row.staged for row in rows], dtype=np.int8),
        scores=None if scores is None else np.array(scores, dtype=float).reshape(len(rows), 4),
    )


def _evictions(evictions: Sequence[Eviction]) -> EvictionRecords:
    return EvictionRecords(
        at=_numbers(eviction.at for eviction in evictions),
        victim=_numbers(eviction.victim.position for eviction in evictions),
        preemptor=_numbers(
            None if eviction.preemptor is None else eviction.preemptor.position
            for eviction in evictions
        ),
        ground=_places(GROUNDS, (eviction.ground for eviction in evictions)),
        pool=_numbers(eviction.pool for eviction in evictions),
        lost=_numbers(eviction.lost for eviction in evictions),
    )


class _Spells:
    def __init__(self, courses: Sequence[Course]) -> None:
        self.courses = courses

    def __call__(self) -> SpellRecords:
        rows = [(course.position, *spell) for course in self.courses for spell in course.spells]
        return SpellRecords(
            job=_numbers(row[0] for row in rows),
            start=_numbers(row[1] for row in rows),
            end=_numbers(row[2] for row in rows),
            reason=_places(REASONS, (row[3] for row in rows)),
        )
