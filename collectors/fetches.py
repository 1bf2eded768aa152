"""One signal over one window: asked, rolled up, stored as steps, hours and days."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pandas as pd

from collectors import rollups, storing
from collectors.catalogue import Kind, Question
from collectors.ranges import Range, floor, ranges
from collectors.rollups import HOUR, STEP
from collectors.source import Source
from portal.telemetry.models import HourCoverage, HourRollup, Quality, SignalFetch, StepRollup


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
        self._max_points = max_points
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
        version, rows, changed = self._question.version, part.rows, 0
        if part.range.as_steps:
            changed += storing.upsert(StepRollup, rows, version=version)
            first, last = part.hours[0], part.hours[-1] + HOUR
            around = [
                storing.stored(StepRollup, **self._of, start=start, end=end)
                for start, end in ((first, part.range.start), (part.range.end, last))
                if start < end
            ]
            rows = pd.concat([one for one in (rows, *around) if not one.empty] or [rows])
            made = rollups.into_hours(rows)
        else:
            made = rows.rename(columns={"at": "hour"})
        self._cover(part, made)
        return changed + storing.upsert(HourRollup, made, version=version)

    def _cover(self, part: Part, made: pd.DataFrame) -> None:
        """Says what came in each hour, also where it is nothing; what was known better stays."""
        of = {"region": self.row.run.region, "signal": self._question.name}
        known = {one.hour: one for one in HourCoverage.objects.filter(**of, hour__in=part.hours)}
        grouped = made.groupby("hour")
        observed: dict[Any, int] = grouped["observed"].max().to_dict()
        series: dict[Any, int] = grouped["series"].nunique().to_dict()
        rows = []
        for hour in part.hours:
            row = known.get(hour) or HourCoverage(**of, hour=hour, observed=0, expected=0, series=0)
            row.gauge = self._question.signal.kind is Kind.GAUGE
            row.observed = max(row.observed, observed.get(pd.Timestamp(hour), 0))
            row.series = max(row.series, series.get(pd.Timestamp(hour), 0))
            due = (min(part.range.end, hour + HOUR) - hour) // STEP
            row.expected = max(row.expected, row.observed, due)
            rows.append(row)
        # Nobody counts refused samples by the hour: those of a fetch stand with its newest one.
        rows[-1].rejected = max(rows[-1].rejected, part.rejected)
        HourCoverage.objects.bulk_create(
            rows, update_conflicts=True, unique_fields=["region", "signal", "hour"],
            update_fields=["observed", "expected", "series", "rejected", "gauge"],
        )  # fmt: skip
