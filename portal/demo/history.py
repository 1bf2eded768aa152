"""The story as imported history: hour rollups like those that collectors make, version "import"."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
from django.db import connection, transaction

from portal.demo import signals
from portal.demo.signals import Floats, Histogram, Ints, Labels, Steps
from portal.demo.story import Story
from portal.fleet.models import Region
from portal.telemetry.models import HourCoverage, HourRollup, Quality, Series, Watermark

VERSION = "import"
HOUR = timedelta(hours=1)
STEP_SECONDS, SAMPLES = 300, 12


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """One series of a signal with an array per hour: sums, counts, least, most, last, buckets."""

    signal: str
    region: str
    labels: Mapping[str, str]
    sums: Floats
    counts: Floats
    least: Floats | None = None
    most: Floats | None = None
    last: Floats | None = None
    buckets: list[str] | None = None

    @property
    def observed(self) -> Floats:
        """How many of an hour's samples there were; of a count, always all."""
        return self.counts if self.last is not None else np.full_like(self.counts, SAMPLES)


def write(story: Story, *, start: datetime, end: datetime) -> int:
    """Writes the hours in [start, end) of every signal; again changes nothing. Returns the rows.

    The hour that `end` cuts is not written: an import brings whole hours.
    """
    first = _whole_hour(start)
    hours = int((end - first) / HOUR)
    if hours <= 0:
        return 0
    instants = [_adapted(first + n * HOUR) for n in range(hours)]
    until = first + hours * HOUR
    regions = {region.name: region for region in Region.objects.all()}
    rows = 0
    seen: dict[tuple[str, str, bool], list[Floats]] = {}
    with transaction.atomic():
        for line in lines(story, first=story.seconds(first), hours=hours):
            known: dict[str, Any] = {"signal": line.signal, **line.labels}
            series, _made = Series.objects.get_or_create(region=regions[line.region], **known)
            rows += _insert(series.pk, line, instants)
            key = line.region, line.signal, line.last is not None
            seen.setdefault(key, []).append(line.observed)
            Watermark.objects.update_or_create(
                region=series.region,
                signal=line.signal,
                version=VERSION,
                defaults={
                    "collected_until": until,
                    "last_sample_at": until - timedelta(seconds=STEP_SECONDS),
                },
            )
        for (region, signal, gauge), observed in seen.items():
            _cover(regions[region], signal, np.array(observed), first, gauge=gauge)
    return rows


def _cover(region: Region, signal: str, observed: Floats, first: datetime, *, gauge: bool) -> None:
    """Says what came of a signal in each hour; `observed` has a row for each of its lines."""
    HourCoverage.objects.bulk_create(
        [
            HourCoverage(
                region=region, signal=signal, hour=first + number * HOUR, observed=int(best),
                expected=SAMPLES, series=int(lines), gauge=gauge,
            )
            for number, (best, lines) in enumerate(
                zip(observed.max(axis=0), (observed > 0).sum(axis=0), strict=True)
            )
        ],
        update_conflicts=True, unique_fields=["region", "signal", "hour"],
        update_fields=["observed", "series"], batch_size=500,
    )  # fmt: skip


def lines(story: Story, *, first: int, hours: int) -> Iterator[Line]:
    """Every series of every signal over so many hours from a second of the story on."""
    seen, where = signals.signals(story), signals.places(story)
    grid = first + STEP_SECONDS * np.arange(hours * SAMPLES)
    edges = (
        first - 1 + 3600 * np.arange(hours + 1, dtype=np.int64)
    )  # an event on the hour counts in the new one
    for pool, found in signals.devices(story, grid).items():
        region = where.region_of_pool[pool]
        reporting = (~np.isnan(found.engine)).sum(axis=0).astype(float)
        reporting[reporting == 0] = np.nan
        for signal, total in (
            ("gpu_reporting_gpus", reporting),
            ("gpu_engine_active_gpus", found.engine.sum(axis=0)),
            ("gpu_resident_gpus", found.resident.sum(axis=0) / 100),
        ):
            yield _gauge(signal, region, {"pool": pool}, total)
    for signal, quotas in (("quota_used_gpus", seen.held), ("quota_nominal_gpus", seen.nominal)):
        for (region, pool, project), steps in quotas.items():
            yield _gauge(signal, region, {"pool": pool, "project": project}, steps.at(grid))
    for signal, queues, detail in (
        ("pending_jobs", seen.pending, {"detail": "active"}),
        ("pending_gpus", seen.pending_gpus, {}),
    ):
        for (region, project, lane), steps in queues.items():
            labels = {"project": project, "lane": lane, **detail}
            yield _gauge(signal, region, labels, steps.at(grid))
    for (region, project, lane), steps in seen.admitted.items():
        yield _counter("admitted_jobs", region, {"project": project, "lane": lane}, steps, edges)
    for (region, project, lane, reason), steps in seen.evicted.items():
        if not steps.times.size:
            continue  # never happened in the whole story; half of the reasons never do
        labels = {"project": project, "lane": lane, "detail": reason}
        yield _counter("evicted_jobs", region, labels, steps, edges)
    for (region, project, lane), waits in seen.waits.items():
        labels = {"project": project, "lane": lane}
        yield _histogram("wait_seconds", region, labels, [waits], edges)
    for (region, pool, lane, storage), keys in _stores(seen.writes).items():
        labels = {"pool": pool, "lane": lane, "storage": storage}
        written = [seen.writes[key] for key in keys]
        yield _histogram("checkpoint_write_seconds", region, labels, written, edges)
        for signal, counters in (
            ("checkpoint_written_bytes", seen.written_bytes),
            ("checkpoint_failures", seen.write_failures),
        ):
            grown = np.array([np.diff(counters[key].at(edges)) for key in keys]).sum(axis=0)
            yield Line(signal, region, labels, grown, np.full(hours, float(SAMPLES)))


def _stores(writes: Mapping[Labels, Histogram]) -> dict[Labels, list[Labels]]:
    """Which series of single tenants add up to each (region, pool, lane, storage)."""
    found: dict[Labels, list[Labels]] = {}
    for region, pool, tenant, lane, storage in writes:
        found.setdefault((region, pool, lane, storage), []).append(
            (region, pool, tenant, lane, storage)
        )
    return found


def _gauge(signal: str, region: str, labels: Mapping[str, str], samples: Floats) -> Line:
    by_hour = pd.DataFrame(samples.reshape(-1, SAMPLES)).T
    return Line(
        signal,
        region,
        labels,
        sums=by_hour.sum(min_count=1).to_numpy(),
        counts=by_hour.count().to_numpy().astype(float),
        least=by_hour.min().to_numpy(),
        most=by_hour.max().to_numpy(),
        last=by_hour.ffill().iloc[-1].to_numpy(),
    )


def _counter(
    signal: str, region: str, labels: Mapping[str, str], steps: Steps, edges: Ints
) -> Line:
    grown = np.diff(steps.at(edges))
    return Line(signal, region, labels, grown, np.full(grown.size, float(SAMPLES)))


def _histogram(
    signal: str,
    region: str,
    labels: Mapping[str, str],
    parts: list[Histogram],
    edges: Ints,
) -> Line:
    bounds = [f"{bound:g}" if np.isfinite(bound) else "+Inf" for bound in parts[0].bounds]
    each = [[np.diff(bucket.at(edges)) for bucket in part.buckets] for part in parts]
    grown = np.add.reduce(np.array(each))
    sums = np.add.reduce(np.array([np.diff(part.total.at(edges)) for part in parts]))
    texts = [json.dumps(dict(zip(bounds, column, strict=True))) for column in grown.T]
    return Line(signal, region, labels, sums, counts=grown[-1], buckets=texts)


def _whole_hour(instant: datetime) -> datetime:
    floor = instant.replace(minute=0, second=0, microsecond=0)
    return floor if floor == instant else floor + HOUR


COLUMNS = (
    "series_id", "hour", "version", "sum_value", "count", "min_value", "max_value", "buckets",
    "last_value", "last_at", "observed", "expected", "quality",
)  # fmt: skip
_TABLE = connection.ops.quote_name(HourRollup._meta.db_table)  # noqa: SLF001
_UPDATED = COLUMNS[3:]
_INSERT = (
    f"INSERT INTO {_TABLE} ({', '.join(COLUMNS)}) VALUES ({', '.join(['%s'] * len(COLUMNS))}) "  # noqa: S608
    "ON CONFLICT (series_id, hour, version) DO UPDATE SET "
    + ", ".join(f"{column} = excluded.{column}" for column in _UPDATED)
)


def _insert(series: int, line: Line, instants: list[tuple[Any, list[Any]]]) -> int:
    """Inserts plainly: half a million rows would take half a minute as model instances."""
    gauge = line.last is not None
    nothing = [None] * len(instants)
    columns = zip(
        instants,
        line.sums.tolist(),
        line.counts.tolist(),
        nothing if line.least is None else line.least.tolist(),
        nothing if line.most is None else line.most.tolist(),
        nothing if line.buckets is None else line.buckets,
        nothing if line.last is None else line.last.tolist(),
        strict=True,
    )
    rows = []
    for (hour, samples_at), total, count, least, most, buckets, last in columns:
        samples = int(count) if gauge else SAMPLES
        if samples == 0:
            continue  # nothing was seen in this hour: unknown, so no row
        last_at = samples_at[samples - 1] if gauge else None
        quality = Quality.COMPLETE.value if samples == SAMPLES else Quality.PARTIAL.value
        rows.append(
            (series, hour, VERSION, total, count, least, most, buckets, last, last_at, samples,
             SAMPLES, quality)
        )  # fmt: skip
    with connection.cursor() as cursor:
        cursor.executemany(_INSERT, rows)
    return len(rows)


def _adapted(hour: datetime) -> tuple[Any, list[Any]]:
    """An hour and its samples' instants as the database takes them."""
    adapt = connection.ops.adapt_datetimefield_value
    step = timedelta(seconds=STEP_SECONDS)
    return adapt(hour), [adapt(hour + n * step) for n in range(SAMPLES)]
