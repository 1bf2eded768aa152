"""The multifactor score, by the very functions that the reference engine calls."""

from __future__ import annotations

from planner.engine.kernel.layout import (
    AGE,
    FAIR,
    HALF_LIFE,
    LANE_RANK,
    MAX_AGE,
    NOW,
    SIZE,
    State,
    jit,
)
from planner.policy import multifactor

_half_to_the = jit(multifactor.half_to_the)
_LN2 = multifactor.LN2


@jit
def age_usage(s: State, instant: int) -> None:
    """Bring every project's decayed usage, and what it is worth, up to an instant."""
    seconds = instant - s.st[NOW]
    total = 0.0
    if seconds > 0:
        half_life = s.multifactor[HALF_LIFE]
        kept = _half_to_the(seconds / half_life)
        gained = (1.0 - kept) * half_life / _LN2
        for q in range(s.projects.size):
            project = s.projects[q]
            project.usage = project.usage * kept + project.held * gained
    for q in range(s.projects.size):
        total += s.projects[q].usage
    for q in range(s.projects.size):
        project = s.projects[q]
        used = 0.0 if total == 0.0 else project.usage / total
        share = project.normalised_share
        if share == 0.0:
            project.fair = 1.0 if used == 0.0 else 0.0
        else:
            project.fair = _half_to_the(used / share)


@jit
def terms(s: State, job: int, now: int) -> tuple[float, float, float, float]:
    """Return the weighted terms of a job's score: age, fair share, size, lane."""
    shape = s.shapes[s.jobs[job].shape_id]
    factors = s.multifactor
    age = (now - s.submit[job]) / factors[MAX_AGE]
    if age > 1.0:
        age = 1.0
    return (
        factors[AGE] * age,
        factors[FAIR] * s.projects[shape.project].fair,
        factors[SIZE] * shape.size_ratio,
        factors[LANE_RANK] * s.lanes[shape.lane].rank_ratio,
    )


@jit
def score(s: State, job: int, now: int) -> float:
    """Return a job's score at this instant."""
    age, fair, size, lane = terms(s, job, now)
    return age + fair + size + lane


@jit
def keep_score(s: State, job: int, attempt: int, now: int) -> None:
    """Keep the components with the decision they led to."""
    age, fair, size, lane = terms(s, job, now)
    s.scores[attempt, 0], s.scores[attempt, 1] = age, fair
    s.scores[attempt, 2], s.scores[attempt, 3] = size, lane
