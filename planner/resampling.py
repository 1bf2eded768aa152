"""Work like the observed work: whole days of it, drawn with replacement."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence

from planner.work import Job

DAY = 86_400
WEEK_DAYS = 7


def draw(observed: int, days: int, seed: int | str) -> list[int]:
    """Draw a day of the observed work for each day; of the same weekday, where two were seen."""
    dice = random.Random(seed)  # noqa: S311 - a repeatable draw, not a secret
    drawn = []
    for day in range(days):
        choices: Sequence[int] = range(day % WEEK_DAYS, observed, WEEK_DAYS)
        if len(choices) < 2:
            choices = range(observed)
        drawn.append(dice.choice(choices))
    return drawn


def compose(jobs: Sequence[Job], drawn: Sequence[int], day_seconds: int = DAY) -> tuple[Job, ...]:
    """Play the drawn days one after the other."""
    by_day: dict[int, list[Job]] = {}
    for job in sorted(jobs, key=lambda job: job.submit_seconds):
        by_day.setdefault(job.submit_seconds // day_seconds, []).append(job)
    return tuple(
        dataclasses.replace(
            job,
            id=f"{job.id}~{day}",
            submit_seconds=job.submit_seconds + (day - source) * day_seconds,
        )
        for day, source in enumerate(drawn)
        for job in by_day.get(source, ())
    )


def observed_days(
    jobs: Sequence[Job], *, day_seconds: int = DAY, horizon_seconds: int | None = None
) -> int:
    """Count the observed days; a last one that the horizon cuts short does not count."""
    days = max((job.submit_seconds // day_seconds + 1 for job in jobs), default=0)
    if horizon_seconds is not None:
        whole = horizon_seconds // day_seconds
        if whole >= 1:
            days = min(days, whole)
    return days


def resample(
    jobs: Sequence[Job], *, days: int, seed: int | str, day_seconds: int = DAY
) -> tuple[Job, ...]:
    """Make `days` of work out of whole days of the observed work, drawn with replacement.

    A day is replaced by one of the same weekday where at least two of them were observed, else by
    any. The time of day is kept, and ids are made unique (`id~day`). The same seed gives the same
    work. No jobs give no jobs.
    """
    observed = observed_days(jobs, day_seconds=day_seconds)
    if not observed:
        return ()
    return compose(jobs, draw(observed, days, seed), day_seconds)
