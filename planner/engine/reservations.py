"""EASY backfill: the first job that lacks GPUs in a pool gets a reservation there (section 4)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from planner.engine.courses import Course
from planner.engine.occupancy import Occupancy
from planner.engine.queues import CAPACITY, Shape


@dataclass(slots=True)
class Reservation:
    """Who holds a pool, from when on its GPUs will be free, and how many will be spare then."""

    holder: Course
    at: int | None = None  # found out when it is first asked for
    spare: int = 0


class Reservations:
    """The reservations of all pools, as things stand between two admissions."""

    def __init__(
        self, occupancy: Occupancy, in_line: Iterable[tuple[Course, Shape]], now: int
    ) -> None:
        """Look through the line for the first job that each pool lacks GPUs for."""
        self._occupancy = occupancy
        self._now = now
        self._held: dict[int, Reservation] = {}
        self._ahead: dict[int, set[int]] = {}
        seen: list[int] = []
        for course, shape in in_line:
            for pool, stage in zip(shape.pools, shape.stages, strict=True):
                if stage == CAPACITY and pool not in self._held:
                    self._held[pool] = Reservation(course)
                    self._ahead[pool] = set(seen)
            seen.append(course.turn)

    def let(self, course: Course, pool: int) -> bool:
        """Say whether a job that fits in the pool may start without delaying who holds it."""
        held = self._held.get(pool)
        if held is None or course.turn in self._ahead[pool]:
            return True
        self._reserve(held, pool)
        return course.gpus <= held.spare or (
            held.at is not None and self._now + limit_left(course) <= held.at
        )

    def of(self, pool: int) -> Reservation | None:
        """Return the reservation of a pool, with the instant from which it holds."""
        held = self._held.get(pool)
        if held is not None:
            self._reserve(held, pool)
        return held

    def _reserve(self, held: Reservation, pool: int) -> None:
        if held.at is not None:
            return
        ends = sorted(
            (max(self._now, other.attempt.start + limit_left(other)), other.gpus)
            for other in self._occupancy.running[pool]
        )
        free = self._occupancy.nodes[pool].free_gpus
        for end, gpus in ends:
            if free >= held.holder.gpus and end != held.at:
                break
            held.at, free = end, free + gpus
        held.spare = free - held.holder.gpus


def limit_left(course: Course) -> int:
    """Return what is left of the time the user asked for, at the attempt's start."""
    job = course.job
    limit = job.work_seconds if job.limit_seconds is None else job.limit_seconds
    return max(0, limit - course.saved)
