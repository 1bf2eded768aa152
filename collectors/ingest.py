"""Collects a region: what is asked of each signal, how it went, and up to where it is collected.

Every write can be repeated: hours that a window touches are made anew as wholes and written over
the same keys. The watermark moves on only when a signal was fetched, so that what failed is
fetched again later.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic

from django.db import IntegrityError, transaction
from django.db.models import OuterRef, Subquery

from collectors import storing
from collectors.catalogue import Catalogue, Question
from collectors.fetches import Fetch
from collectors.ranges import floor
from collectors.rollups import HOUR, STEP, UnusableAnswerError
from collectors.source import BadQuery, Source, SourceError, TimedOut
from portal.fleet.models import Region
from portal.telemetry.models import CollectionRun, RunState, SignalFetch, Watermark

logger = logging.getLogger(__name__)

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
    lines, points = storing.Lines(run.region), catalogue.max_points(run.region.name)
    for question in catalogue.asked_in(run.region.name):
        window = _window(run.region, question, now=now, since=since, until=until)
        if window is None:
            continue
        fetch = _Attempt(run, question, window, source=source, lines=lines, points=points, now=now)
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
    settled = floor(now - SETTLES, STEP)
    if since is not None:
        # Whole hours: half of one would be written over the whole that may be there already.
        end = settled if until is None else min(settled, floor(until + HOUR - STEP, HOUR))
        start = floor(since, HOUR)
        return Window(start, end, start) if start < end else None
    mark = Watermark.objects.filter(
        region=region, signal=question.name, version=question.version
    ).first()
    asked = settled - MOST_AT_ONCE if mark is None else mark.collected_until
    start = floor(asked, HOUR)
    # An hour more, so that a day behind the newest step still reaches it.
    behind = settled - start > MOST_AT_ONCE + HOUR
    end = start + MOST_AT_ONCE if behind else settled
    return Window(start, end, asked) if asked < end else None


class _Attempt:
    """One signal of a run: fetched and stored, or why not."""

    def __init__(
        self,
        run: CollectionRun,
        question: Question,
        window: Window,
        *,
        source: Source,
        lines: storing.Lines,
        points: int,
        now: datetime,
    ) -> None:
        self.question = question
        self.window = window
        queries = question.queries(step_seconds=int(STEP.total_seconds()))
        self.row = SignalFetch(
            run=run, signal=question.name, version=question.version,
            query="\n\n".join(queries), asked_from=window.start, asked_to=window.end,
            duration_seconds=0,
        )  # fmt: skip
        self.fetch = Fetch(
            self.row, question, source=source, lines=lines, max_points=points, now=now
        )

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
            parts = self.fetch.asked()
        except SourceError as error:
            self.row.duration_seconds = monotonic() - began
            return self.failed(error.kind, str(error)), error
        except UnusableAnswerError as error:
            self.row.duration_seconds = monotonic() - began
            return self.failed(BadQuery.kind, str(error)), None
        partial = self.fetch.partial
        with transaction.atomic():
            self.row.rows = self.fetch.store(parts)
            self._move_on(self.fetch.newest, partial=partial)
            self.row.state = RunState.PARTIAL if partial else RunState.COMPLETE
            self.row.duration_seconds = monotonic() - began
            self.row.save()
        return self.row.state, None

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


def _overall(states: list[str]) -> RunState:
    if all(state == RunState.COMPLETE for state in states):
        return RunState.COMPLETE
    if all(state == RunState.FAILED for state in states):
        return RunState.FAILED
    return RunState.PARTIAL
