"""One signal over one window: asked, rolled up, stored as steps, hours and days."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import pandas as pd
from django.db.models import Count, Max, Q

from collectors import rollups, storing
from collectors.catalogue import Kind, Question
from collectors.ranges import Range, floor, ranges
from collectors.rollups import EXPECTED, HOUR, STEP
from collectors.source import Source, SourceError
from collectors.windows import Stretch
from portal.telemetry.models import (
    HourCoverage,
    HourRollup,
    Quality,
    SignalFetch,
    StepRollup,
)

# A day of steps at a time: a week of a large region takes a server longer than one request may.
MOST_POINTS = 288
_PARTIAL = Q(quality=Quality.PARTIAL)


@dataclass(frozen=True, slots=True)
class Part:
    """What came of a range: rows of the finest level that is kept of it, lines by their keys."""

    range: Range
    rows: pd.DataFrame
    rejected: int
    late: bool

    @property
    def hours(self) -> list[datetime]:
        """The hours that the range touches."""
        start = floor(self.range.start, HOUR)
        return [start + n * HOUR for n in range(-((start - self.range.end) // HOUR))]


class Fetch:
    """Asks for the signal and window of `row` and stores what came; `row` records how it went."""

    def __init__(
        self,
        row: SignalFetch,
        question: Question,
        *,
        source: Source,
        lines: storing.Lines,
        max_points: int,
        now: datetime,
        late: Stretch | None = None,
    ) -> None:
        self.row = row
        self.newest: datetime | None = None
        self.partial = False
        self.late = late
        self._question = question
        self._source = source
        self._lines = lines
        self._max_points = min(max_points, MOST_POINTS)
        self._now = now
        self._of = storing.Of(region=row.run.region, signal=question.name, version=question.version)

    def asked(self) -> list[Part]:
        """What the server answers for the window. Raises SourceError, UnusableAnswerError.

        What is read again, `late`, fails nothing: it becomes None when it did not come.
        """
        parts = self._parts(self.row.asked_from, self.row.asked_to, late=False)
        if self.newest is None:
            self.row.warnings.append("No series answers: the exporter may not publish this.")
        again = self._asked_before(self.late)
        if again is not None:
            try:
                parts += self._parts(*again, late=True)
            except SourceError as error:
                self.row.warnings.append(f"What may have come late was not read again: {error}")
                self.late = None
        return parts

    def store(self, parts: Sequence[Part]) -> int:
        """Writes what came, in the caller's transaction; gives how many rows changed.

        Hours are made as wholes: what a window does not hold of an hour is read from its steps.
        """
        changed, touched = 0, set[datetime]()
        for part in parts:
            rows = self._store(part)
            # What was read again and is as it was touches nothing.
            if rows or not part.late:
                touched.update(part.hours)
                self._cover(part)
            changed += rows
        return changed + storing.renew_days(**self._of, hours=touched, until=self._now)

    def _asked_before(self, late: Stretch | None) -> Stretch | None:
        """What of it was ever asked for: a new signal has no hours before its first."""
        if late is None:
            return None
        start, end = late
        hours = HourCoverage.objects.filter(
            region=self.row.run.region, signal=self._question.name,
            hour__gte=floor(start, HOUR), hour__lt=end, imported=False,
        )  # fmt: skip
        first = hours.order_by("hour").values_list("hour", flat=True).first()
        return None if first is None else (max(start, first), end)

    def _parts(self, start: datetime, end: datetime, *, late: bool) -> list[Part]:
        found = ranges(start=start, end=end, now=self._now)
        return [self._part(one, late=late) for r in found for one in r.split(self._begun(r))]

    def _begun(self, one: Range) -> list[datetime]:
        """The old hours of which some steps are stored: the others are asked step by step too.

        Asked as a whole after an outage, an hour would lose what was known before it.
        """
        if one.as_steps:
            return []
        hours = HourCoverage.objects.filter(
            region=self.row.run.region, signal=self._question.name, hour__gte=one.start,
            hour__lt=one.end, observed__gt=0, observed__lt=EXPECTED,
        ).order_by("hour").values_list("hour", flat=True)  # fmt: skip
        of = {"series__region": self.row.run.region, "series__signal": self._question.name}
        return [
            hour
            for hour in hours
            if StepRollup.objects.filter(
                **of, version=self._question.version, at__gte=hour, at__lt=hour + HOUR
            ).exists()
        ]

    def _part(self, one: Range, *, late: bool) -> Part:
        kind, columns = self._question.signal.kind, self._question.columns
        names = list(columns.values())
        first, last, step = one.instants(kind)
        frames, rejected = [], 0
        for query in self._question.queries(step_seconds=int(step.total_seconds())):
            answer = self._source.fetch(
                query, start=first, end=last, step=step, max_points=self._max_points
            )
            frame, refused = rollups.tidy(answer.frame, columns)
            keys = self._lines.keys(self._question.name, frame[names])
            frames.append(frame.drop(columns=names).assign(series=keys))
            rejected += answer.rejected + refused
            self.row.series = max(self.row.series, answer.series)
            self.row.samples += len(frame)
            said = [*answer.warnings]
            if refused:
                said.append(f"{refused} samples carry a name that is too long.")
            self.row.warnings = list(dict.fromkeys([*self.row.warnings, *said]))
            self.partial = self.partial or answer.partial
        self.row.rejected += rejected
        if not frames[0].empty:
            newest = frames[0]["at"].max().to_pydatetime()
            self.newest = newest if self.newest is None else max(self.newest, newest)
        made = rollups.steps(kind, frames[0], ["series"], *frames[1:2], step=step)
        if not one.as_steps and kind is Kind.GAUGE:
            made = rollups.into_hours(made).rename(columns={"hour": "at"})
        quality = Quality.PARTIAL if self.partial else Quality.COMPLETE
        return Part(one, made.assign(quality=str(quality)), rejected, late)

    def _store(self, part: Part) -> int:
        version, rows = self._question.version, part.rows
        if not part.range.as_steps:
            made = rows.rename(columns={"at": "hour"})
            return storing.upsert(HourRollup, made, version=version, whole_hours=True)
        changed = storing.upsert(StepRollup, rows, version=version)
        if changed or not part.late:
            changed += storing.renew_hours(**self._of, hours=part.hours)
        return changed

    def _cover(self, part: Part) -> None:
        """Says what came in each hour, also where it is nothing; what was known better stays."""
        region, signal = self.row.run.region, self._question.name
        known = {
            one.hour: one
            for one in HourCoverage.objects.filter(
                region=region, signal=signal, hour__in=part.hours
            )
        }
        came = {
            hour: (observed, series, bool(partial))
            for hour, observed, series, partial in HourRollup.objects.filter(
                series__region=region, series__signal=signal,
                version=self._question.version, hour__in=part.hours,
            )
            .values_list("hour")
            .annotate(best=Max("observed"), lines=Count("pk"), parts=Count("pk", filter=_PARTIAL))
        }  # fmt: skip
        rows = []
        for hour in part.hours:
            row = known.get(hour)
            if row is None or row.imported:
                row = HourCoverage(
                    region=region, signal=signal, hour=hour, observed=0, expected=0, series=0
                )
            observed, series, row.partial = came.get(hour, (0, 0, self.partial))
            row.observed, row.series = max(row.observed, observed), max(row.series, series)
            row.gauge = self._question.signal.kind is Kind.GAUGE
            due = (min(part.range.end, hour + HOUR) - hour) // STEP
            row.expected = max(row.expected, row.observed, due)
            rows.append(row)
        # Nobody counts refused samples by the hour: those of a fetch stand with its newest one.
        rows[-1].rejected = max(rows[-1].rejected, part.rejected)
        HourCoverage.objects.bulk_create(
            rows, update_conflicts=True, unique_fields=["region", "signal", "hour"],
            update_fields=[
                "observed", "expected", "series", "rejected", "gauge", "partial", "imported"
            ],
        )  # fmt: skip
