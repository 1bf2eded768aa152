"""Why a job that may displace others has displaced nobody in a pool."""

from __future__ import annotations

from planner.engine.courses import Course
from planner.explanation.facts import Spared, Undisplaced
from planner.explanation.watching import Watched
from planner.vocabulary import Reason

# The checks that others can be displaced to pass.
OPEN = (
    Reason.WAITING_FOR_QUOTA,
    Reason.BORROWING_LIMIT_REACHED,
    Reason.WAITING_FOR_CAPACITY,
    Reason.FRAGMENTED,
)


def undisplaced(
    run: Watched, course: Course, pool: int, check: Reason | None
) -> Undisplaced | None:
    """Find why nobody was displaced; None where the latest pass did not look for anybody."""
    rights, now = run.columns.rights[course.lane], run.passed_at
    tried = run.head_before(course) is None and not run.evicted_in_pass(course)
    if check not in OPEN or not rights.any or not tried:
        return None
    within = run.occupancy.accounts[pool].within_nominal(course.project, course.gpus)
    found = list(run.displaceable(course, pool, within_nominal=within))
    protected = [free_from for _, _, free_from in found if free_from > now]
    if not found:
        others = any(run.displaceable(course, pool, within_nominal=True))
        why = Spared.OVER_NOMINAL if others else Spared.NOBODY
    elif len(protected) == len(found):
        why = Spared.PROTECTED
    elif run.victims(course, pool, now)[0]:
        return None  # they came in after its turn
    else:
        why = Spared.NOT_ENOUGH
    lanes = run.scenario.lanes
    return Undisplaced(
        why=why,
        jobs=len(found),
        gpus=sum(other.gpus for other, _, _ in found),
        protected_jobs=len(protected),
        protected_until_seconds=min(protected, default=None),
        preempts=tuple(lanes[lane].name for lane in sorted(rights.preempts)),
        reclaim=rights.reclaim,
    )
