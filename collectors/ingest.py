"""Collects a region: what is asked of each signal, how it went, and what is left to ask.

Every write can be repeated: rows are made anew as wholes and written over the same keys. What was
stored and what is left to ask for are written in one transaction, and only by who holds the claim
on the region: so nothing is lost and nothing is twice, whenever a run ends.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from time import monotonic
from uuid import uuid4

from django.db import transaction
from django.db.models import OuterRef, Subquery

from collectors import progress, storing, windows
from collectors.catalogue import Catalogue, Question
from collectors.claims import Claim, ClaimLostError
from collectors.fetches import Fetch
from collectors.rollups import STEP, UnusableAnswerError
from collectors.source import BadQuery, Source, SourceError, TimedOut
from collectors.windows import Gap, Outcome, Why, Window
from portal import env
from portal.fleet.models import Region
from portal.telemetry import doubts
from portal.telemetry.models import CollectionRun, RunState, SignalFetch

logger = logging.getLogger(__name__)

# The next run is due then: it takes the newest first, and goes on with the gaps.
FILLS_FOR_SECONDS = 240
# A run and its fetches are some 8,000 rows a day for two regions.
KEPT_FOR = timedelta(days=30)
PRUNED_AT_ONCE = 200


class AlreadyCollectingError(RuntimeError):
    """Another collection of the region is under way."""


def collect(
    *,
    region: Region,
    catalogue: Catalogue,
    source: Source,
    asked_by: str,
    now: datetime,
    since: datetime | None = None,
    until: datetime | None = None,
    owner: str | None = None,
) -> CollectionRun:
    """Fetches every signal of a region from where it stopped, or from `since` (up to `until`).

    Never raises for what a server does: the run and its fetches record it. A run in which nothing
    was due is not kept: its key is None. Raises AlreadyCollectingError when the region is being
    collected by another `owner`.
    """
    with _claimed(region, owner=owner or uuid4().hex) as claim:
        run = _started(region, claim, source=source.address, asked_by=asked_by, now=now)
        began = monotonic()
        try:
            asked = _Asked(run, claim, catalogue, source, now=now, since=since, until=until)
            states = asked.all_signals()
            run.state = _overall(states)
            if asked.given_up is not None:
                run.error_kind, run.error = asked.given_up.kind, str(asked.given_up)
        except ClaimLostError as lost:
            logger.warning("%s", lost)
        finally:
            # Also when the time limit of the task ends it: no run stays "running" by an error.
            if run.state == RunState.RUNNING:
                run.state = RunState.FAILED
            run.duration_seconds = monotonic() - began
            run.finished_at = now + timedelta(seconds=run.duration_seconds)
            run.save()
        if run.state == RunState.COMPLETE and not states:
            run.delete()  # nothing was due: that says nothing of how collecting goes
            return run
        if run.state != RunState.FAILED:
            doubts.judge(region=region, now=now)
    return run


def refused(*, region: Region, kind: str, error: str, asked_by: str, now: datetime) -> None:
    """Records a collection that could not even begin, so that it is seen why nothing comes."""
    CollectionRun.objects.create(
        region=region, asked_by=asked_by, source="", state=RunState.FAILED, started_at=now,
        finished_at=now, duration_seconds=0, error_kind=kind, error=error,
    )  # fmt: skip


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


@contextmanager
def _claimed(region: Region, *, owner: str) -> Iterator[Claim]:
    claim = Claim(region, owner=owner)
    if not claim.take():
        raise AlreadyCollectingError(f"{region.name} is being collected already.")
    try:
        yield claim
    finally:
        claim.release()


def _started(
    region: Region, claim: Claim, *, source: str, asked_by: str, now: datetime
) -> CollectionRun:
    with transaction.atomic():
        claim.check()
        # Who held the claim before us was killed, or was not heard of for too long.
        CollectionRun.objects.filter(region=region, state=RunState.RUNNING).update(
            state=RunState.FAILED, finished_at=now
        )
        return CollectionRun.objects.create(
            region=region, asked_by=asked_by, source=source[:200], started_at=now
        )


@dataclass(slots=True)
class _Signal:
    """What a run still asks of one signal, the newest window first."""

    question: Question
    windows: list[Window]


class _Asked:
    """What a run asks of all signals: the newest window of each, then the gaps in rounds."""

    def __init__(
        self,
        run: CollectionRun,
        claim: Claim,
        catalogue: Catalogue,
        source: Source,
        *,
        now: datetime,
        since: datetime | None,
        until: datetime | None,
    ) -> None:
        self._run = run
        self._claim = claim
        self._source = source
        self._now = now
        self._since = since
        self._lines = storing.Lines(run.region)
        self._points = catalogue.max_points(run.region.name)
        self._most = timedelta(hours=env.value(env.COLLECT_FILL_HOURS))
        self.given_up: SourceError | None = None
        self._previous: SourceError | None = None
        self._signals = [
            _Signal(question, self._windows(question, until))
            for question in catalogue.asked_in(run.region.name)
        ]

    def all_signals(self) -> list[str]:
        """Asks, stores, and gives the state of each window. Raises ClaimLostError."""
        states, began = [], monotonic()
        while any(signal.windows for signal in self._signals):
            for signal in self._signals:
                if not signal.windows:
                    continue
                window = signal.windows.pop(0)
                late = monotonic() - began > FILLS_FOR_SECONDS
                if window.why is Why.GAP and (late or self.given_up):
                    signal.windows.clear()  # they stay gaps
                    continue
                self._claim.renew()
                state = self._one(signal.question, window)
                states.append(state)
                if window.why is Why.NEWEST and state == RunState.FAILED:
                    signal.windows.clear()
        return states

    def _windows(self, question: Question, until: datetime | None) -> list[Window]:
        of = storing.Of(region=self._run.region, signal=question.name, version=question.version)
        if self._since is None:
            known = progress.load(of, now=self._now)
            return windows.scheduled(known, now=self._now, most=self._most)
        asked = windows.back_fill(since=self._since, until=until, now=self._now)
        with transaction.atomic():
            self._claim.check()
            known = progress.load(of, now=self._now, since=self._since)
            # Owed before it is asked for: a kill leaves it to the schedule.
            owed = windows.taken_over(known, [Gap(window.start, window.end) for window in asked])
            progress.store(of, owed)
        return asked

    def _one(self, question: Question, window: Window) -> str:
        attempt = _Attempt(
            self._run, self._claim, question, window, source=self._source, lines=self._lines,
            points=self._points, now=self._now, since=self._since,
        )  # fmt: skip
        if self.given_up is not None:
            # The server as a whole does not answer: each further question would only wait.
            return attempt.failed(self.given_up, Outcome.NOT_ASKED)
        state, error = attempt.run_once()
        twice = isinstance(error, TimedOut) and isinstance(self._previous, TimedOut)
        if error is not None and (error.server_wide or twice):
            self.given_up = error
        self._previous = error
        return state


class _Attempt:
    """One window of a signal: fetched and stored, or why not."""

    def __init__(
        self,
        run: CollectionRun,
        claim: Claim,
        question: Question,
        window: Window,
        *,
        source: Source,
        lines: storing.Lines,
        points: int,
        now: datetime,
        since: datetime | None,
    ) -> None:
        self._claim = claim
        self._window = window
        self._now = now
        self._since = since
        self._of = storing.Of(region=run.region, signal=question.name, version=question.version)
        queries = question.queries(step_seconds=int(STEP.total_seconds()))
        self.row = SignalFetch(
            run=run, signal=question.name, version=question.version,
            query="\n\n".join(queries), asked_from=window.start, asked_to=window.end,
            duration_seconds=0,
        )  # fmt: skip
        self.fetch = Fetch(
            self.row, question, source=source, lines=lines, max_points=points, now=now,
            late=window.late,
        )  # fmt: skip

    def failed(self, error: SourceError, outcome: Outcome) -> str:
        """Records why nothing came; what was asked for stays to be asked."""
        self.row.state, self.row.error_kind, self.row.error = (
            RunState.FAILED, error.kind, str(error),
        )  # fmt: skip
        with transaction.atomic():
            self._claim.check()
            self.row.save()
            self._move_on(outcome)
        return self.row.state

    def run_once(self) -> tuple[str, SourceError | None]:
        """Fetches and stores; gives the state and, if it failed, the error."""
        began = monotonic()
        try:
            parts = self.fetch.asked()
        except SourceError as error:
            self.row.duration_seconds = monotonic() - began
            outcome = Outcome.NOT_ASKED if error.server_wide else Outcome.FAILED
            return self.failed(error, outcome), error
        except UnusableAnswerError as error:
            self.row.duration_seconds = monotonic() - began
            return self.failed(BadQuery(str(error)), Outcome.FAILED), None
        partial = self.fetch.partial
        with transaction.atomic():
            self._claim.check()
            self.row.rows = self.fetch.store(parts)
            self._move_on(Outcome.PARTIAL if partial else Outcome.WHOLE)
            self.row.state = RunState.PARTIAL if partial else RunState.COMPLETE
            self.row.duration_seconds = monotonic() - began
            self.row.save()
        return self.row.state, None

    def _move_on(self, outcome: Outcome) -> None:
        known = progress.load(self._of, now=self._now, since=self._since)
        window = replace(self._window, late=self.fetch.late)
        after = windows.after(known, window, outcome, now=self._now)
        progress.store(self._of, after, newest=self.fetch.newest)


def _overall(states: list[str]) -> RunState:
    if all(state == RunState.COMPLETE for state in states):
        return RunState.COMPLETE
    if all(state == RunState.FAILED for state in states):
        return RunState.FAILED
    return RunState.PARTIAL
