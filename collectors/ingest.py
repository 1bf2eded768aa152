"""Fetches a region's signals and keeps them as hours. The only file here that touches the database.

Every write can be repeated: hours that a window touches are computed anew as wholes and written
over the same keys. The watermark moves on only when a signal was fetched, so that what failed is
fetched again later.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any

import pandas as pd
from django.db import IntegrityError, transaction
from django.db.models import OuterRef, Subquery

from collectors import rollups
from collectors.catalogue import Catalogue, Kind, Question
from collectors.rollups import EXPECTED, STEP, UnusableAnswerError
from collectors.source import BadQuery, Source, SourceError, TimedOut
from portal.fleet.models import Region
from portal.telemetry.models import (
    CollectionRun,
    HourRollup,
    Quality,
    RunState,
    Series,
    SignalFetch,
    Watermark,
)

logger = logging.getLogger(__name__)

HOUR = timedelta(hours=1)
# A scheduled run catches up at most so much of each signal; the next one goes on.
MOST_AT_ONCE = timedelta(hours=24)
# A window that was answered in part is asked again for so long, then kept as partial.
PARTIAL_FOR = timedelta(hours=24)
# The newest step may still be filling.
SETTLES = timedelta(seconds=30)
# A run and its fetches are some 8,000 rows a day for two regions.
KEPT_FOR = timedelta(days=30)
PRUNED_AT_ONCE = 200
# Longer than any run may last (Celery's hard time limit, plus what a kill takes).
RUN_LOST_AFTER = timedelta(minutes=35)
COLUMNS = ("pool", "project", "lane", "storage", "detail")
MEASURED = (
    "sum_value", "count", "min_value", "max_value", "buckets", "last_value", "last_at", "observed",
    "expected", "quality",
)  # fmt: skip


class AlreadyCollectingError(RuntimeError):
    """Another collection of the region is under way."""


@dataclass(frozen=True, slots=True)
class Window:
    """From the start of an hour to the end of one, or of the newest step; goes on from `asked`."""

    start: datetime
    end: datetime
    asked: datetime


def collect(
    *,
    region: Region,
    catalogue: Catalogue,
    source: Source,
    asked_by: str,
    now: datetime,
    since: datetime | None = None,
    until: datetime | None = None,
) -> CollectionRun:
    """Fetches every signal of a region from where it stopped, or from `since` (up to `until`).

    Never raises for what a server does: the run and its fetches record it. Raises
    AlreadyCollectingError when the region is being collected.
    """
    run = _claim(region=region, source=source.address, asked_by=asked_by, now=now)
    began = monotonic()
    try:
        states = _all_signals(run, catalogue, source, now=now, since=since, until=until)
        run.state = _overall(states)
    finally:
        # Also when the time limit of the task ends it: a run never stays "running" by an error.
        if run.state == RunState.RUNNING:
            run.state = RunState.FAILED
        run.duration_seconds = monotonic() - began
        run.finished_at = now + timedelta(seconds=run.duration_seconds)
        run.save(update_fields=["state", "duration_seconds", "finished_at"])
    return run


def prune(*, now: datetime) -> int:
    """Forgets how collections older than KEPT_FOR went, a few at a time; the hours stay.

    Of each region the newest run stays, however old: it says what went wrong last.
    """
    of_region = CollectionRun.objects.filter(region=OuterRef("pk")).order_by("-started_at")
    newest = Region.objects.annotate(run=Subquery(of_region.values("pk")[:1])).values_list("run")
    old = CollectionRun.objects.filter(started_at__lt=now - KEPT_FOR)
    old = old.exclude(pk__in=[pk for (pk,) in newest if pk is not None])
    forgotten = 0
    while some := list(old.values_list("pk", flat=True)[:PRUNED_AT_ONCE]):
        CollectionRun.objects.filter(pk__in=some).delete()
        forgotten += len(some)
    return forgotten


def _claim(*, region: Region, source: str, asked_by: str, now: datetime) -> CollectionRun:
    CollectionRun.objects.filter(
        region=region, state=RunState.RUNNING, started_at__lt=now - RUN_LOST_AFTER
    ).update(state=RunState.FAILED, finished_at=now)
    try:
        with transaction.atomic():
            return CollectionRun.objects.create(
                region=region, asked_by=asked_by, source=source[:200], started_at=now
            )
    except IntegrityError:
        raise AlreadyCollectingError(f"{region.name} is being collected already.") from None


def _all_signals(
    run: CollectionRun,
    catalogue: Catalogue,
    source: Source,
    *,
    now: datetime,
    since: datetime | None,
    until: datetime | None,
) -> list[str]:
    states: list[str] = []
    given_up: SourceError | None = None
    previous: SourceError | None = None
    for question in catalogue.asked_in(run.region.name):
        window = _window(run.region, question, now=now, since=since, until=until)
        if window is None:
            continue
        fetch = _Fetch(run, question, window, catalogue.max_points(run.region.name), source)
        if given_up is not None:
            # The server as a whole does not answer: each further question would only wait.
            states.append(fetch.failed(given_up.kind, str(given_up)))
            continue
        state, error = fetch.run_once()
        states.append(state)
        twice = isinstance(error, TimedOut) and isinstance(previous, TimedOut)
        if error is not None and (error.server_wide or twice):
            given_up = error
        previous = error
    return states


def _window(
    region: Region,
    question: Question,
    *,
    now: datetime,
    since: datetime | None,
    until: datetime | None,
) -> Window | None:
    settled = _floor(now - SETTLES, STEP)
    if since is not None:
        # Whole hours: half of one would be written over the whole that may be there already.
        end = settled if until is None else min(settled, _floor(until + HOUR - STEP, HOUR))
        start = _floor(since, HOUR)
        return Window(start, end, start) if start < end else None
    mark = Watermark.objects.filter(
        region=region, signal=question.name, version=question.version
    ).first()
    asked = settled - MOST_AT_ONCE if mark is None else mark.collected_until
    start = _floor(asked, HOUR)
    # An hour more, so that a day behind the newest step still reaches it.
    behind = settled - start > MOST_AT_ONCE + HOUR
    end = start + MOST_AT_ONCE if behind else settled
    return Window(start, end, asked) if asked < end else None


class _Fetch:
    """One signal of a run: asked, rolled up, stored."""

    def __init__(
        self, run: CollectionRun, question: Question, window: Window, points: int, source: Source
    ) -> None:
        self.question = question
        self.window = window
        self.points = points
        self.source = source
        queries = question.queries(step_seconds=int(HOUR.total_seconds()))
        self.row = SignalFetch(
            run=run, signal=question.name, version=question.version,
            query="\n\n".join(queries), asked_from=window.start, asked_to=window.end,
            duration_seconds=0,
        )  # fmt: skip

    def failed(self, kind: str, text: str) -> str:
        """Records why nothing came; the watermark stays, so that it is fetched again.

        A signal without one gets it at what was asked: or the next run would reach back less far.
        """
        self.row.state, self.row.error_kind, self.row.error = RunState.FAILED, kind, text
        with transaction.atomic():
            self.row.save()
            Watermark.objects.get_or_create(
                region=self.row.run.region, signal=self.question.name,
                version=self.question.version, defaults={"collected_until": self.window.asked},
            )  # fmt: skip
        return self.row.state

    def run_once(self) -> tuple[str, SourceError | None]:
        """Fetches and stores; gives the state and, if it failed, the error."""
        began = monotonic()
        try:
            made, newest, partial = self._fetched()
        except SourceError as error:
            self.row.duration_seconds = monotonic() - began
            return self.failed(error.kind, str(error)), error
        except UnusableAnswerError as error:
            self.row.duration_seconds = monotonic() - began
            return self.failed(BadQuery.kind, str(error)), None
        with transaction.atomic():
            self.row.rows = self._store(made, partial=partial)
            self._move_on(newest, partial=partial)
            self.row.state = RunState.PARTIAL if partial else RunState.COMPLETE
            self.row.duration_seconds = monotonic() - began
            self.row.save()
        return self.row.state, None

    def _fetched(self) -> tuple[pd.DataFrame, datetime | None, bool]:
        parts, newest, partial = [], None, False
        for start, end, step in self._ranges():
            made, last, in_part = self._range(start, end, step)
            parts.append(made)
            newest = last or newest
            partial = partial or in_part
        if newest is None:
            self.row.warnings.append("No series answers: the exporter may not publish this.")
        filled = [made for made in parts if not made.empty] or parts[:1]
        return pd.concat(filled, ignore_index=True), newest, partial

    def _ranges(self) -> list[tuple[datetime, datetime, timedelta]]:
        """The instants to ask for, with the step between them.

        A gauge is read at the start of each five minutes. A count's increase is asked at the end of
        each whole hour, and of each five minutes of the hour that is under way: a twelfth of the
        work for the server, and the same rows whenever an hour was fetched.
        """
        start, end = self.window.start, self.window.end
        if self.question.signal.kind is Kind.GAUGE:
            return [(start, end - STEP, STEP)]
        whole = _floor(end, HOUR)
        ranges = [(start + HOUR, whole, HOUR), (whole + STEP, end, STEP)]
        return [one for one in ranges if one[0] <= one[1]]

    def _range(
        self, start: datetime, end: datetime, step: timedelta
    ) -> tuple[pd.DataFrame, datetime | None, bool]:
        kind, columns = self.question.signal.kind, self.question.columns
        frames, partial = [], False
        for query in self.question.queries(step_seconds=int(step.total_seconds())):
            answer = self.source.fetch(
                query, start=start, end=end, step=step, max_points=self.points
            )
            frame, refused = rollups.tidy(answer.frame, columns)
            frames.append(frame)
            self.row.series = max(self.row.series, answer.series)
            self.row.samples += len(frame)
            self.row.rejected += answer.rejected + refused
            said = [*answer.warnings]
            if refused:
                said.append(f"{refused} samples carry a name that is too long.")
            self.row.warnings = list(dict.fromkeys([*self.row.warnings, *said]))
            partial = partial or answer.partial
        made = rollups.hours(kind, frames[0], list(columns.values()), *frames[1:2], step=step)
        newest = None if frames[0].empty else frames[0]["at"].max().to_pydatetime()
        return made, newest, partial

    def _store(self, made: pd.DataFrame, *, partial: bool) -> int:
        if made.empty:
            return 0
        names = list(self.question.columns.values())
        lines = _series_of(self.row.run.region, self.question.name, names, made)
        quality = Quality.PARTIAL if partial else Quality.COMPLETE
        rows = [
            HourRollup(
                series_id=lines[tuple(str(row[name]) for name in names)],
                hour=row["hour"].to_pydatetime(),
                version=self.question.version,
                sum_value=_known(row["sum_value"]),
                count=float(row["count"]),
                min_value=_known(row["min_value"]),
                max_value=_known(row["max_value"]),
                buckets=row["buckets"],
                last_value=_known(row["last_value"]),
                last_at=None if pd.isna(row["last_at"]) else row["last_at"].to_pydatetime(),
                observed=int(row["observed"]),
                expected=EXPECTED,
                quality=quality,
            )
            for row in made.to_dict("records")
        ]
        HourRollup.objects.bulk_create(
            rows,
            batch_size=500,
            update_conflicts=True,
            unique_fields=["series", "hour", "version"],
            update_fields=MEASURED,
        )
        return len(rows)

    def _move_on(self, newest: datetime | None, *, partial: bool) -> None:
        region, window = self.row.run.region, self.window
        mark = Watermark.objects.filter(
            region=region, signal=self.question.name, version=self.question.version
        ).first()
        reached = max(window.asked, window.end - PARTIAL_FOR) if partial else window.end
        if mark is None:
            mark = Watermark(
                region=region, signal=self.question.name, version=self.question.version,
                collected_until=reached,
            )  # fmt: skip
        elif window.asked <= mark.collected_until:
            # A back-fill that starts after the mark would leave a hole unfetched behind it.
            mark.collected_until = max(mark.collected_until, reached)
        if newest is not None and (mark.last_sample_at is None or newest > mark.last_sample_at):
            mark.last_sample_at = newest
        mark.save()


def _series_of(
    region: Region, signal: str, names: list[str], made: pd.DataFrame
) -> dict[tuple[str, ...], int]:
    """Label values → primary key of their line, made where it is new."""
    wanted = {
        tuple(str(value) for value in values)
        for values in made[names].drop_duplicates().itertuples(index=False, name=None)
    }
    others = {name: "" for name in COLUMNS if name not in names}
    found = Series.objects.filter(region=region, signal=signal, **others)

    def read() -> dict[tuple[str, ...], int]:
        return {tuple(row[1:]): row[0] for row in found.values_list("pk", *names).all()}

    known = read()
    missing = wanted - known.keys()
    if missing:
        Series.objects.bulk_create(
            [
                Series(region=region, signal=signal, **dict(zip(names, values, strict=True)))
                for values in sorted(missing)
            ],
            ignore_conflicts=True,
        )
        known = read()
    return known


def _known(value: Any) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def _overall(states: list[str]) -> RunState:
    if all(state == RunState.COMPLETE for state in states):
        return RunState.COMPLETE
    if all(state == RunState.FAILED for state in states):
        return RunState.FAILED
    return RunState.PARTIAL


def _floor(instant: datetime, unit: timedelta) -> datetime:
    """The instant on the grid of a unit, at or before; the grid starts at the epoch."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return epoch + (instant.astimezone(UTC) - epoch) // unit * unit
