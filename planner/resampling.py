"""Work like the observed work: whole days of it, drawn with replacement."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence

import numpy as np

from planner.work import Job, JobTable, texts

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


def compose(jobs: Sequence[Job], drawn: Sequence[int], day_seconds: int = DAY) -> JobTable:
    """Play the drawn days one after the other."""
    table = JobTable.of(jobs)
    days = table.submit_seconds // day_seconds
    order = np.argsort(table.submit_seconds, kind="stable")
    sources = np.array(drawn, dtype=np.int64)
    firsts = np.searchsorted(days[order], sources, side="left")
    counts = np.searchsorted(days[order], sources, side="right") - firsts
    day = np.repeat(np.arange(len(sources)), counts)  # of each job
    # The places of a day's jobs in `order`: its first, and as many more as it has.
    within = np.arange(len(day)) - np.repeat(np.cumsum(counts) - counts, counts)
    taken = table.take(order[firsts[day] + within])
    endings = texts([f"~{number}" for number in range(len(sources))])
    return dataclasses.replace(
        taken,
        ids=np.strings.add(taken.ids, endings[day]),
        submit_seconds=taken.submit_seconds + (day - sources[day]) * day_seconds,
    )


def observed_days(
    jobs: Sequence[Job], *, day_seconds: int = DAY, horizon_seconds: int | None = None
) -> int:
    """Count the observed days; a last one that the horizon cuts short does not count."""
    submits = JobTable.of(jobs).submit_seconds
    days = int(submits.max()) // day_seconds + 1 if len(submits) else 0
    if horizon_seconds is not None:
        whole = horizon_seconds // day_seconds
        if whole >= 1:
            days = min(days, whole)
    return days


def resample(
    jobs: Sequence[Job], *, days: int, seed: int | str, day_seconds: int = DAY
) -> JobTable:
    """Make `days` of work out of whole days of the observed work, drawn with replacement.

    A day is replaced by one of the same weekday where at least two of them were observed, else by
    any. The time of day is kept, and ids are made unique (`id~day`). The same seed gives the same
    work. No jobs give no jobs.
    """
    observed = observed_days(jobs, day_seconds=day_seconds)
    return compose(jobs, draw(observed, days, seed) if observed else (), day_seconds)
