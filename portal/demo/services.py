"""Seeds the demo and tells its story further."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Max

from portal.demo import conversations, history, story, world
from portal.telemetry import services as telemetry
from portal.telemetry.models import CollectionRun, HourRollup, ImportBatch, RunState


@dataclass(frozen=True, slots=True)
class Told:
    """What a seeding or a tick wrote."""

    seeded: bool
    jobs: int
    hours: int


def first_day() -> date | None:
    """The day in Japan on which this demo was first started; None before that."""
    earliest = ImportBatch.objects.filter(source=story.SOURCE).order_by("imported_at").first()
    return None if earliest is None else earliest.imported_at.astimezone(story.JST).date()


@transaction.atomic
def seed(*, now: datetime) -> Told:
    """Makes the demo world when there is none, and tells its story up to now.

    A world that is there is kept: only the missing time is added. Seeding twice changes nothing.
    """
    # Nothing collects while the demo starts: a run that still counts as running was cut off.
    CollectionRun.objects.filter(state=RunState.RUNNING).update(
        state=RunState.FAILED, finished_at=now
    )
    day = first_day()
    told = story.tell(first_day=day or now.astimezone(story.JST).date(), now=now)
    if day is None:
        world.create(told)
    jobs = tick(now=now, told=told)
    newest: dict[str, Any] = HourRollup.objects.aggregate(hour=Max("hour"))
    start = told.history_start
    if newest["hour"] is not None:
        # Hours are written whole: going over the newest again would only stir its last digits.
        start = max(start, newest["hour"] + timedelta(hours=1))
    hours = history.write(told, start=start, end=now) if start < now else 0
    if day is None:
        conversations.hold(now=now)
    return Told(seeded=day is None, jobs=jobs, hours=hours)


def tick(*, now: datetime, told: story.Story | None = None) -> int:
    """Records what the demo's jobs did since the last time; returns how many jobs were told of."""
    if told is None:
        day = first_day()
        if day is None:
            return 0
        told = story.tell(first_day=day, now=now)
    known = ImportBatch.objects.filter(source=story.SOURCE).aggregate(Max("known_until"))
    since = known["known_until__max"]
    if since is not None and since >= now:
        return 0
    jobs, attempts = story.records(told, now=now, since=since)
    batch = telemetry.record_jobs(
        source=story.SOURCE, jobs=jobs, attempts=attempts, known_until=now, now=now,
        note="The demo's story.",
    )  # fmt: skip
    if batch.problems:
        raise RuntimeError(f"The story does not make sense: {batch.problems[0]}")
    # Every job belongs to the batch that told of it last: batches without any are over.
    ImportBatch.objects.filter(source=story.SOURCE, jobs=None).exclude(pk=batch.pk).delete()
    return batch.rows
