"""One signal over one window: asked, rolled up, stored as steps, hours and days."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
from django.db.models import Count, Max

from collectors import rollups, storing
from collectors.catalogue import Kind, Question
from collectors.ranges import Range, floor, ranges
from collectors.rollups import HOUR, STEP
from collectors.source import Source
from portal.telemetry.models import HourCoverage, HourRollup, Quality, SignalFetch, StepRollup

# A day of steps at a time: a week of a large region takes a server longer than one request may.
MOST_POINTS = 288


@dataclass(frozen=True, slots=True)
class Part:
    """What came of a range: rows of the finest level that is kept of it, lines by their keys."""

    range: Range
    rows: pd.DataFrame
    rejected: int

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
    ) -> None:
        self.row = row
        self.newest: datetime | None = None
        self.partial = False
        self._question = question
        self._source = source
        self._lines = lines
        self._max_points = min(max_points, MOST_POINTS)
        self._now = now
        self._of = storing.Of(region=row.run.region, signal=question.name, version=question.version)

    def asked(self) -> list[Part]:
        """What the server answers for the window. Raises SourceError, UnusableAnswerError."""
        found = ranges(start=self.row.asked_from, end=self.row.asked_to, now=self._now)
        parts = [self._part(one) for one in found]
        if self.newest is None:
            self.row.warnings.append("No series answers: the exporter may not publish this.")
        return parts

    def store(self, parts: Sequence[Part]) -> int:
        """Writes what came, in the caller's transaction; gives how many rows changed.

        Hours are made as wholes: what a window does not hold of an hour is read from its steps.
        """
        changed = sum(self._store(part) for part in parts)
        touched = {hour for part in parts for hour in part.hours}
        return changed + storing.renew_days(**self._of, hours=touched, until=self._now)

    def _part(self, one: Range) -> Part:
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
        return Part(one, made.assign(quality=str(quality)), rejected)

    def _store(self, part: Part) -> int:
        version = self._question.version
        if part.range.as_steps:
            rows, hours = self._new(part)
            changed = storing.upsert(StepRollup, rows, version=version)
            changed += storing.renew_hours(**self._of, hours=hours)
        else:
            made = part.rows.rename(columns={"at": "hour"})
            changed = storing.upsert(HourRollup, made, version=version)
        self._cover(part)
        return changed

    def _new(self, part: Part) -> tuple[pd.DataFrame, list[datetime]]:
        """The steps that say something new, and the hours to make anew.

        Late data is looked for every hour in whole hours that nearly always have not changed: where
        a line's hour has the same figures, its steps are there already.
        """
        rows, hours = part.rows, []
        keep = np.ones(len(rows), dtype=bool)
        for hour in part.hours:
            here = np.flatnonzero((rows["at"] >= hour) & (rows["at"] < hour + HOUR))
            if part.range.start <= hour and hour + HOUR <= part.range.end and len(here):
                inside = rows.iloc[here]
                keep[here] = ~inside["series"].isin(self._unchanged(inside, hour)).to_numpy()
                if not keep[here].any():
                    continue
            hours.append(hour)
        return rows[keep], hours

    def _unchanged(self, steps: pd.DataFrame, hour: datetime) -> pd.Index[Any]:
        """The lines whose hour, made of these steps, is the one that is stored."""
        made = rollups.into_hours(steps.assign(buckets=None)).set_index("series")
        known = storing.figures(**self._of, hour=hour).reindex(made.index)
        same = np.isclose(
            made[storing.FIGURES].to_numpy(dtype="float64"), known[storing.FIGURES].to_numpy(),
            rtol=1e-12, atol=0, equal_nan=True,
        ).all(axis=1)  # fmt: skip
        alike = pd.Series(same, index=made.index) & (made["quality"] == known["quality"])
        return alike.index[alike]

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
            hour: (observed, series)
            for hour, observed, series in HourRollup.objects.filter(
                series__region=region, series__signal=signal,
                version=self._question.version, hour__in=part.hours,
            )
            .values_list("hour")
            .annotate(Max("observed"), Count("pk"))
        }  # fmt: skip
        rows = []
        for hour in part.hours:
            row = known.get(hour) or HourCoverage(
                region=region, signal=signal, hour=hour, observed=0, expected=0, series=0
            )
            observed, series = came.get(hour, (0, 0))
            row.observed, row.series = max(row.observed, observed), max(row.series, series)
            row.gauge = self._question.signal.kind is Kind.GAUGE
            due = (min(part.range.end, hour + HOUR) - hour) // STEP
            row.expected = max(row.expected, row.observed, due)
            rows.append(row)
        # Nobody counts refused samples by the hour: those of a fetch stand with its newest one.
        rows[-1].rejected = max(rows[-1].rejected, part.rejected)
        HourCoverage.objects.bulk_create(
            rows, update_conflicts=True, unique_fields=["region", "signal", "hour"],
            update_fields=["observed", "expected", "series", "rejected", "gauge"],
        )  # fmt: skip
