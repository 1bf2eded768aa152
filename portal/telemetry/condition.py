"""In what condition the collected signals are: last good, lag, gaps, errors, contradictions.

Read at once for all regions, in a fixed number of queries: the page, our own metrics and whoever
asks next say the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from statistics import median
from typing import NamedTuple

from django.db.models import F, Max, Window
from django.db.models.functions import RowNumber

from portal.telemetry.models import (
    Claim,
    CollectionRun,
    Doubt,
    Gap,
    HourCoverage,
    RunState,
    SignalFetch,
    Watermark,
)
from portal.telemetry.quality import state_of_age
from portal.telemetry.versions import is_batch

HOUR = timedelta(hours=1)
# A run asks for every signal that has something new; so many reach back over the last hour.
RUNS = 12
# Where jobs are lines, some come and go; a third fewer at once is something else.
FEW = 0.67
ENOUGH_HOURS = 6


class Came(StrEnum):
    """What came of a signal in an hour; `unsure` is an answer in part."""

    ALL = "all"
    PART = "part"
    UNSURE = "unsure"
    NOTHING = "nothing"
    NOT_COLLECTED = "not-collected"


class Stretch(NamedTuple):
    """Hours one after the other that went alike."""

    came: Came
    start: datetime
    hours: int


class Hour(NamedTuple):
    """What came of a signal in one hour, as HourCoverage keeps it."""

    observed: int
    expected: int
    rejected: int
    gauge: bool
    series: int
    partial: bool


@dataclass(frozen=True, slots=True)
class SignalCondition:
    """One signal of a region. Unknown is None, never 0.

    `lag_seconds` is how far collecting is behind now; `age_seconds` how old the newest sample is.
    `coverage_ratio` (0-1) is the share of five-minute steps with a sample since `since`, counted
    from the signal's first hour there; None of a signal that never came. `owed_seconds` is how much
    time could not be fetched yet and is asked again. `error_kind` and `error` are those of the
    newest fetch; `warnings` what the server said when it answered only in part. `usual_series` is
    how many lines had samples in the middle hour of the window; `hour_series` in the newest whole
    one. A signal that only imports bring has a state of its own, and `imported_until`: it is
    neither fresh nor behind.
    """

    region: str
    signal: str
    last_sample_at: datetime | None
    age_seconds: float | None
    lag_seconds: float | None
    state: str
    coverage_ratio: float | None
    observed_steps: int
    due_steps: int
    gauge: bool
    owed_seconds: float
    stretches: tuple[Stretch, ...]
    series: int | None
    rejected: int
    error_kind: str
    error: str
    warnings: tuple[str, ...]
    hour_series: int | None
    usual_series: int | None
    imported_until: datetime | None

    @property
    def partial(self) -> bool:
        """Whether the newest answer was only a part: figures may be too low."""
        return bool(self.warnings)

    @property
    def silent_series(self) -> bool:
        """Whether clearly fewer lines of a gauge have samples than usual."""
        now, usual = self.hour_series, self.usual_series
        return self.gauge and now is not None and usual is not None and now < FEW * usual


@dataclass(frozen=True, slots=True)
class RegionCondition:
    """A region: when a collection last went well, how the newest ones went, what contradicts.

    `passed_over` counts collections that were not made: `busy` met another one, `overdue` came too
    late.
    """

    region: str
    last_success_at: datetime | None
    last_run: CollectionRun | None
    failed_in_a_row: int
    passed_over: dict[str, int]
    signals: tuple[SignalCondition, ...]
    doubts: tuple[Doubt, ...]

    @property
    def coverage_ratio(self) -> float | None:
        """The share (0-1) of steps with a sample, over the gauges that had one since then."""
        seen = [signal for signal in self.signals if signal.gauge and signal.observed_steps]
        due = sum(signal.due_steps for signal in seen)
        return sum(signal.observed_steps for signal in seen) / due if due else None


def condition(*, now: datetime, since: datetime) -> dict[str, RegionCondition]:
    """The condition of every region that was ever collected, by its name."""
    marks, imported = _marks()
    runs = _newest_runs()
    fetches = _newest_fetches(runs)
    hours = _hours(since)
    owed: defaultdict[tuple[str, str], float] = defaultdict(float)
    for region, signal, start, end in Gap.objects.values_list(
        "region__name", "signal", "start", "end"
    ):
        owed[region, signal] += (end - start).total_seconds()
    found = defaultdict(list)
    for region, signal in sorted({*marks, *imported, *fetches, *hours}):
        until, sample = marks.get((region, signal), (None, None))
        fetch = fetches.get((region, signal))
        came = hours.get((region, signal), {})
        observed, due = sum(hour.observed for hour in came.values()), _due(came, now=now)
        age = None if sample is None else max((now - sample).total_seconds(), 0.0)
        failed = fetch is not None and fetch.state == RunState.FAILED
        by_hand = imported.get((region, signal)) if until is None and fetch is None else None
        newest, usual = _lines(came, now=now)
        found[region].append(
            SignalCondition(
                region=region,
                signal=signal,
                last_sample_at=sample,
                age_seconds=age,
                lag_seconds=None if until is None else max((now - until).total_seconds(), 0.0),
                state="imported" if by_hand is not None else state_of_age(age),
                # Of what never came nobody knows whether there is anything to come.
                coverage_ratio=observed / due if due and (observed or sample) else None,
                observed_steps=observed,
                due_steps=due,
                gauge=any(hour.gauge for hour in came.values()),
                owed_seconds=owed.get((region, signal), 0.0),
                stretches=_stretches(came, since=since, now=now),
                series=None if fetch is None or failed else fetch.series,
                rejected=sum(hour.rejected for hour in came.values()),
                error_kind=fetch.error_kind if fetch is not None and failed else "",
                error=fetch.error if fetch is not None and failed else "",
                warnings=tuple(fetch.warnings)
                if fetch is not None and fetch.state == RunState.PARTIAL
                else (),
                hour_series=newest,
                usual_series=usual,
                imported_until=by_hand,
            )
        )
    doubts = defaultdict(list)
    for doubt in Doubt.objects.select_related("region").order_by("since", "pk"):
        doubts[doubt.region.name].append(doubt)
    good = dict(
        CollectionRun.objects.filter(state__in=[RunState.COMPLETE, RunState.PARTIAL])
        .values_list("region__name")
        .annotate(Max("finished_at"))
    )
    passed_over = {
        region: {"busy": busy, "overdue": overdue}
        for region, busy, overdue in Claim.objects.values_list("region__name", "busy", "overdue")
    }
    return {
        region: RegionCondition(
            region=region,
            last_success_at=good.get(region),
            last_run=runs[region][0] if runs[region] else None,
            failed_in_a_row=_failed_in_a_row(runs[region]),
            passed_over=passed_over.get(region, {}),
            signals=tuple(found[region]),
            doubts=tuple(doubts[region]),
        )
        for region in sorted({*found, *runs, *doubts})
    }


def _marks() -> tuple[
    dict[tuple[str, str], tuple[datetime, datetime | None]], dict[tuple[str, str], datetime]
]:
    """Up to where each signal was collected, with its newest sample; and of imports the latter."""
    collected: dict[tuple[str, str], tuple[datetime, datetime | None]] = {}
    imported: dict[tuple[str, str], datetime] = {}
    for region, signal, version, until, sample in Watermark.objects.values_list(
        "region__name", "signal", "version", "collected_until", "last_sample_at"
    ):
        key = region, signal
        if is_batch(version):
            imported[key] = max(imported.get(key, until), until)
            continue
        before, newest = collected.get(key, (until, sample))
        known = [one for one in (newest, sample) if one is not None]
        collected[key] = max(before, until), max(known, default=None)
    return collected, imported


def _lines(came: Mapping[datetime, Hour], *, now: datetime) -> tuple[int | None, int | None]:
    """How many lines had samples in the newest whole hour, and in the middle one of all."""
    newest = came.get(_floor(now) - HOUR)
    whole = [one.series for hour, one in came.items() if hour < _floor(now) and one.series]
    if newest is None or len(whole) < ENOUGH_HOURS:
        return None, None
    return newest.series, int(median(whole))


def _newest_runs() -> defaultdict[str, list[CollectionRun]]:
    """Per region its newest runs that are over, newest first."""
    ranked = (
        CollectionRun.objects.exclude(state=RunState.RUNNING)
        .annotate(
            place=Window(
                RowNumber(), partition_by=F("region"), order_by=[F("started_at").desc(), "-pk"]
            )
        )
        .filter(place__lte=RUNS)
        .select_related("region")
    )
    runs: defaultdict[str, list[CollectionRun]] = defaultdict(list)
    for run in ranked:
        runs[run.region.name].append(run)
    for of_region in runs.values():
        of_region.sort(key=lambda run: (run.started_at, run.pk), reverse=True)
    return runs


def _newest_fetches(
    runs: Mapping[str, list[CollectionRun]],
) -> dict[tuple[str, str], SignalFetch]:
    newest: dict[tuple[str, str], SignalFetch] = {}
    names = {run.pk: region for region, of_region in runs.items() for run in of_region}
    fetches = SignalFetch.objects.filter(run__in=list(names)).order_by("run__started_at", "pk")
    for fetch in fetches.defer("query"):
        newest[names[fetch.run_id], fetch.signal] = fetch
    return newest


def _failed_in_a_row(runs: list[CollectionRun]) -> int:
    count = 0
    for run in runs:
        if run.state != RunState.FAILED:
            break
        count += 1
    return count


def _hours(since: datetime) -> dict[tuple[str, str], dict[datetime, Hour]]:
    found: defaultdict[tuple[str, str], dict[datetime, Hour]] = defaultdict(dict)
    for region, signal, hour, *came in HourCoverage.objects.filter(
        hour__gte=_floor(since)
    ).values_list("region__name", "signal", "hour", *Hour._fields):
        found[region, signal][hour] = Hour(*came)
    return dict(found)


def _due(came: Mapping[datetime, Hour], *, now: datetime) -> int:
    """Steps since the first hour that was collected; of the hour under way, those that are over."""
    if not came:
        return 0
    newest = came.get(_floor(now))
    return 12 * ((_floor(now) - min(came)) // HOUR) + (newest.expected if newest else 0)


def _stretches(
    came: Mapping[datetime, Hour], *, since: datetime, now: datetime
) -> tuple[Stretch, ...]:
    made: list[Stretch] = []
    hour = _floor(since)
    # The hour under way is no gap before something of it came.
    while hour + HOUR <= now or hour in came:
        one = came.get(hour)
        if one is None:
            how = Came.NOT_COLLECTED
        elif one.observed == 0:
            how = Came.NOTHING
        elif one.partial:
            how = Came.UNSURE
        else:
            how = Came.ALL if one.observed >= one.expected else Came.PART
        if made and made[-1].came is how:
            made[-1] = Stretch(how, made[-1].start, made[-1].hours + 1)
        else:
            made.append(Stretch(how, hour, 1))
        hour += HOUR
    return tuple(made)


def _floor(instant: datetime) -> datetime:
    return instant.replace(minute=0, second=0, microsecond=0)
