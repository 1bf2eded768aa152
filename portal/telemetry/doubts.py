"""Figures that contradict each other, found after each collection and kept while they do."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

import pandas as pd
from django.db.models import Sum

from portal.fleet.models import Pool, Region
from portal.telemetry import selectors
from portal.telemetry.models import Doubt, DoubtKind, JobRecord, JobState
from portal.telemetry.quality import LIVE_WITHIN

# A queue may stand still for a night; for a whole day it is worth a look.
STILL_FOR = timedelta(hours=24)
# Records and scheduler are read at different instants: so much apart they may lie.
RECORDS_APART_RATIO = 0.1
RECORDS_APART_GPUS = 8
CLOCK_SECONDS = 1.0


class Found(NamedTuple):
    """One contradiction: `found` is what was measured, `against` what it should go with."""

    kind: DoubtKind
    subject: str
    found: float
    against: float


def judge(*, region: Region, now: datetime) -> list[Doubt]:
    """Looks for contradictions in a region's newest figures and keeps those that there are.

    One that was there before keeps its `since`; one that is gone is deleted. Figures that are not
    live contradict nothing: what is old is shown as old.
    """
    found = {(one.kind.value, one.subject): one for one in _found(region, now)}
    kept = []
    for doubt in Doubt.objects.filter(region=region):
        one = found.pop((doubt.kind, doubt.subject), None)
        if one is None:
            doubt.delete()
            continue
        doubt.found, doubt.against = one.found, one.against
        doubt.save(update_fields=["found", "against"])
        kept.append(doubt)
    for one in found.values():
        made, _new = Doubt.objects.update_or_create(
            region=region,
            kind=one.kind,
            subject=one.subject[:127],
            defaults={"found": one.found, "against": one.against},
            create_defaults={"found": one.found, "against": one.against, "since": now},
        )
        kept.append(made)
    return kept


def _found(region: Region, now: datetime) -> Iterator[Found]:
    held = _live("quota_used_gpus", region, ["pool"], now)
    pools = {pool.name: pool.gpus for pool in Pool.objects.filter(domain__region=region)}
    for kind, values in (
        (DoubtKind.HELD_OVER_INSTALLED, held),
        (DoubtKind.SEEN_OVER_INSTALLED, _live("gpu_reporting_gpus", region, ["pool"], now)),
    ):
        for pool, gpus in values.items():
            # A pool that nobody entered is unknown, not empty.
            if pool in pools and gpus > pools[pool]:
                yield Found(kind, str(pool), float(gpus), float(pools[pool]))
    yield from _still(region, now)
    yield from _records(held, pools, now)
    for offset in _live("clock_offset_seconds", region, [], now):
        if abs(offset) > CLOCK_SECONDS:
            yield Found(DoubtKind.CLOCK_OFF, "", float(offset), CLOCK_SECONDS)


def _live(signal: str, region: Region, by: list[str], now: datetime) -> pd.Series[float]:
    """The newest values of a gauge by `by`, without those that are not live."""
    frame = selectors.latest(signal=signal, region=region.name, by=by, now=now)
    frame = frame[frame["at"] > now - LIVE_WITHIN]
    return frame.set_index(by[0])["value"] if by else frame["value"]


def _still(region: Region, now: datetime) -> Iterator[Found]:
    """Projects whose queue had the same jobs for a day, while nothing arrived or was admitted."""
    asked = {"start": now - STILL_FOR, "end": now, "regions": [region.name], "by": ["project"]}
    pending = selectors.hours(signal="pending_jobs", **asked)  # type: ignore[arg-type]
    if pending.empty:
        return
    admitted = selectors.hours(signal="admitted_jobs", **asked)  # type: ignore[arg-type]
    if admitted.empty:
        return  # nobody counts admissions here: nothing to hold against it
    moved = set(admitted.loc[admitted["sum_value"] > 0, "project"])
    arrived = set(
        JobRecord.objects.filter(submit_at__gte=now - STILL_FOR).values_list("project", flat=True)
    )
    whole = STILL_FOR // timedelta(hours=1)
    for project, hours in pending.groupby("project"):
        jobs = {*hours["min_value"], *hours["max_value"]}
        stands = len(hours) >= whole and len(jobs) == 1 and jobs != {0.0}
        if stands and project not in moved | arrived:
            yield Found(DoubtKind.QUEUE_STANDS_STILL, str(project), jobs.pop(), 0.0)


def _records(held: pd.Series[float], pools: dict[str, int], now: datetime) -> Iterator[Found]:
    """Pools where the scheduler's held GPUs and those of running job records lie far apart."""
    until = selectors.known_until()
    if until is None or until < now - LIVE_WITHIN:
        return  # the records are older than what is held now
    running: dict[str, int] = dict(
        JobRecord.objects.filter(state=JobState.RUNNING, pool__in=list(pools))
        .values_list("pool")
        .annotate(Sum("gpus"))
    )
    for name, gpus in held.items():
        pool = str(name)
        recorded = running.get(pool, 0)
        most = max(RECORDS_APART_GPUS, RECORDS_APART_RATIO * pools.get(pool, 0))
        if pool in pools and abs(gpus - recorded) > most:
            yield Found(DoubtKind.HELD_AGAINST_RECORDS, pool, float(gpus), float(recorded))
