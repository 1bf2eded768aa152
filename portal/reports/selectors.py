"""The weekly report as one person may see it: read once, then shown and written as it is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pandas as pd
from django.db.models import Min

from portal.accounts.models import User
from portal.fleet.models import Region
from portal.http import Week
from portal.policy import selectors as policy
from portal.policy.models import Quota
from portal.reports import definitions, fairness
from portal.reports.fairness import Span
from portal.telemetry import selectors as telemetry
from portal.telemetry.models import JobRecord
from portal.tenants.models import Project
from portal.tenants.selectors import visible_projects, visible_tenants


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """From when to when there are job records."""

    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A week of one zone for one viewer. `span` is the known part of it, None when there is none.

    `figures` has the columns of `fairness.COLUMNS`; they come from job records and quota in force.
    `coverage` says for each region which share (0-1) of the week's monitoring data is there.
    """

    week: Week
    zone: ZoneInfo
    starts_at: datetime
    ends_at: datetime
    known: Known | None
    span: Span | None
    figures: pd.DataFrame
    coverage: list[tuple[Region, float | None]]
    sees_all: bool
    generated_at: datetime

    @property
    def is_open(self) -> bool:
        """The week still goes on."""
        return self.generated_at < self.ends_at

    @property
    def is_whole(self) -> bool:
        """Job records are known for the whole week."""
        span = self.span
        return span is not None and (span.start, span.until) == (self.starts_at, self.ends_at)

    def file(self) -> pd.DataFrame:
        """The report as it is downloaded: the page's own figures, each row with week and origin."""
        table = self.figures.copy()
        table.insert(0, "week", str(self.week))
        table["zone"] = self.zone.key
        span = self.span
        for column, instant in {
            "figures_from": span and span.start,
            "figures_until": span and span.until,
            "known_until": self.known and self.known.until,
            "generated_at": self.generated_at,
        }.items():
            text = instant and instant.astimezone(self.zone).isoformat(timespec="seconds")
            table[column] = pd.Series([text] * len(table), dtype="str", index=table.index)
        table["definitions_version"] = definitions.version()
        return table


def latest_week(*, zone: ZoneInfo, now: datetime) -> Week:
    """The last week that is over and of which all job records are known."""
    until = telemetry.known_until()
    return Week.of(now if until is None else min(now, until), zone).shifted(-1)


def report(*, week: Week, zone: ZoneInfo, viewer: User, now: datetime) -> Report:
    """The week's report as this person may see it.

    Ops and auditors see everybody; others their own projects, and their tenant where they
    administer it; of the rest only sums that name nobody: the fleet, its lanes, and the pools that
    they themselves may use.
    """
    start, end = week.window(zone)
    known = _known()
    span = _span(start, end, known, now)
    fleet, places = _fleet(span)
    if span and known:
        earlier, _end = week.shifted(-1).window(zone)
        fleet = fairness.compared(fleet, _before(span, earlier - start, known))
    return Report(
        week=week,
        zone=zone,
        starts_at=start,
        ends_at=end,
        known=known,
        span=span,
        figures=_seen(fleet, places, viewer),
        coverage=[
            (region, telemetry.coverage(region=region.name, start=start, end=min(end, now)))
            for region in Region.objects.all()
        ]
        if start < now
        else [],
        sees_all=viewer.sees_all_tenants,
        generated_at=now,
    )


def _known() -> Known | None:
    since = JobRecord.objects.aggregate(since=Min("submit_at"))["since"]
    until = telemetry.known_until()
    return Known(since=since, until=until) if since and until else None


def _span(start: datetime, end: datetime, known: Known | None, now: datetime) -> Span | None:
    """The part of a week that the records speak about: what is not recorded is not idle."""
    if known is None:
        return None
    since, until = max(start, known.since), min(end, known.until, now)
    return Span(start=since, until=until, known_until=known.until) if since < until else None


def _before(span: Span, shift: timedelta, known: Known) -> pd.DataFrame:
    """The same part of the week before, or nothing when not all of it is known."""
    start, until = span.start + shift, span.until + shift
    if start < known.since:
        return pd.DataFrame(columns=fairness.COLUMNS)
    fleet, _places = _fleet(Span(start=start, until=until, known_until=known.until))
    return fleet


def _fleet(span: Span | None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Everybody's figures, and which project has or holds anything in which pool."""
    if span is None:
        return pd.DataFrame(columns=fairness.COLUMNS), pd.DataFrame(columns=["project", "pool"])
    attempts = telemetry.attempts(start=span.start, end=span.until)
    levels = _levels(span)
    fleet = fairness.week(
        jobs=telemetry.jobs(start=span.start, end=span.until),
        attempts=attempts,
        levels=levels,
        span=span,
        tenants=dict(Project.objects.values_list("name", "tenant__name")),
    )
    columns = ["project", "pool"]
    return fleet, pd.concat([levels[columns], attempts[columns]]).drop_duplicates()


def _levels(span: Span) -> pd.DataFrame:
    """How many GPUs each project was entitled to between one change of quota and the next."""
    changes = Quota.objects.between(span.start, span.until).values_list("starts_at", flat=True)
    edges = sorted({span.start, span.until, *changes})
    parts = []
    for start, end in pairwise(edges):
        part = policy.entitled(start=start, end=end)
        part["nominal_gpus"] = (
            part["nominal_gpu_seconds"] / max(1, int((end - start).total_seconds()))
        ).round()
        parts.append(part.assign(start_at=start, end_at=end))
    table = pd.concat(parts, ignore_index=True)
    for column in ("start_at", "end_at"):
        table[column] = pd.to_datetime(table[column], utc=True)
    return table.astype({"nominal_gpus": "int64"})


def _seen(fleet: pd.DataFrame, places: pd.DataFrame, viewer: User) -> pd.DataFrame:
    if viewer.sees_all_tenants:
        return fleet.reset_index(drop=True)
    projects = set(visible_projects(viewer).values_list("name", flat=True))
    tenants = set(visible_tenants(viewer).values_list("name", flat=True))
    pools = set(places.loc[places["project"].isin(projects), "pool"])
    own = {"project": projects, "tenant": tenants, "pool": pools}
    kept = [
        scope in {"total", "lane"} or name in own[scope]
        for scope, name in zip(fleet["scope"], fleet["name"], strict=True)
    ]
    # .loc: an empty list picks no row here, but no column in fleet[[]].
    return fleet.loc[kept].reset_index(drop=True)
