"""Stores signals that came as a file, as one batch that can be undone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pandas as pd
from django.db import transaction

from collectors import rollups, storing
from collectors.catalogue import BUCKET_BOUND, Kind
from collectors.openmetrics import Text
from collectors.ranges import STEPS_FOR
from collectors.rollups import EXPECTED
from portal.fleet.models import Region
from portal.telemetry.models import (
    HourCoverage,
    HourRollup,
    ImportBatch,
    ImportKind,
    StepRollup,
    Watermark,
)

# With the batch; the command lists them all.
KEPT_PROBLEMS = 20


class ImportedBeforeError(ValueError):
    """The same file was imported before, and is not undone."""


@transaction.atomic
def store(
    text: Text, *, region: Region, source: str, digest: str, now: datetime, again: bool = False
) -> ImportBatch:
    """Stores what a file holds of a region; all of it, or nothing.

    Raises ImportedBeforeError when a file with the same digest was, unless `again`.
    """
    before = ImportBatch.objects.filter(
        kind=ImportKind.ROLLUPS, region=region, digest=digest, undone_at__isnull=True
    ).first()
    if before is not None and not again:
        raise ImportedBeforeError(
            f"This file was imported as batch {before.pk} at {before.imported_at:%Y-%m-%d %H:%M} "
            "UTC; undo it first, or import it again with --again."
        )
    batch = ImportBatch.objects.create(
        kind=ImportKind.ROLLUPS, region=region, source=source[:63], digest=digest, imported_at=now,
        known_until=_instant(text.last_second), problems_count=text.problems_count,
        problems=[
            {"line": one.line, "what": one.what, "expected": one.expected}
            for one in text.problems[:KEPT_PROBLEMS]
        ],
    )  # fmt: skip
    lines = storing.Lines(region)
    for signal in text.signals():
        batch.rows += _signal(text, signal, batch, lines, now=now)
    batch.save(update_fields=["rows"])
    return batch


def _signal(
    text: Text, signal: str, batch: ImportBatch, lines: storing.Lines, *, now: datetime
) -> int:
    steps = text.steps(signal)
    if steps.empty:
        return 0
    labels = text.lines(signal).drop(columns=BUCKET_BOUND, errors="ignore")
    steps["series"] = lines.keys(signal, labels.iloc[steps.pop("line")].reset_index(drop=True))
    hours = rollups.into_hours(steps)
    of = storing.Of(region=lines.region, signal=signal, version=batch.version)
    # Old steps are read by nobody: hours stand for them, as when they are collected late.
    recent = steps[steps["at"] >= now - STEPS_FOR]
    rows = storing.upsert(StepRollup, recent, version=batch.version)
    rows += storing.upsert(HourRollup, hours, version=batch.version)
    touched = [hour.to_pydatetime() for hour in hours["hour"].unique()]
    rows += storing.renew_days(**of, hours=touched, until=now)
    _cover(hours, of, gauge=text.catalogue.signals[signal].kind is Kind.GAUGE)
    newest = steps["at"].max().to_pydatetime()
    Watermark.objects.create(
        region=lines.region, signal=signal, version=batch.version,
        collected_until=newest + rollups.STEP, last_sample_at=newest,
    )  # fmt: skip
    return rows


def _cover(hours: pd.DataFrame, of: storing.Of, *, gauge: bool) -> None:
    """Says what came in hours of which nothing was known; what was collected says it better."""
    came = hours.groupby("hour").agg(observed=("observed", "max"), series=("series", "nunique"))
    HourCoverage.objects.bulk_create(
        [
            HourCoverage(
                region=of["region"], signal=of["signal"], hour=hour.to_pydatetime(),
                observed=int(observed), expected=EXPECTED, series=int(series), gauge=gauge,
                imported=True,
            )
            for hour, observed, series in came.itertuples(name=None)
        ],
        ignore_conflicts=True, batch_size=storing.SQLITE_CHUNK,
    )  # fmt: skip


def _instant(second: float) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=second)
