"""Puts together the page Data quality: what came, what is missing, what contradicts, what to do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from django.utils.translation import gettext, ngettext

from portal.dashboards import selectors
from portal.fleet.models import Region
from portal.telemetry.condition import (
    RUNS,
    Came,
    SignalCondition,
    Stretch,
    condition,
)
from portal.telemetry.models import CollectionRun, Doubt, DoubtKind
from portal.theme.templatetags.units import duration, local, number

SHOWN = timedelta(days=7)
HOUR = timedelta(hours=1)
# Gaps that are told in words; the strip shows all of them.
TOLD = 5
FULL = 10
HEIGHTS = {
    Came.ALL: FULL, Came.PART: 6, Came.UNSURE: 6, Came.NOTHING: 2, Came.NOT_COLLECTED: FULL,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Bar:
    """A stretch of the strip, in hours from its left end."""

    came: Came
    x: int
    width: int
    height: int
    title: str

    @property
    def y(self) -> int:
        """Where it begins, from above: bars stand on the ground."""
        return FULL - self.height


@dataclass(frozen=True, slots=True)
class SignalRow:
    """A signal as the page shows it."""

    now: SignalCondition
    todo: str
    notes: list[str]
    bars: list[Bar]
    gaps: list[str]
    more_gaps: int
    summary: str


@dataclass(frozen=True, slots=True)
class Collected:
    """How good a region's data is."""

    region: Region
    label: str
    last_success_at: datetime | None
    failed: str
    error: str
    todo: str
    signals: list[SignalRow]
    silent: list[str]
    doubts: list[str]
    runs: list[CollectionRun]
    coverage: float | None


def page(*, now: datetime, most: int) -> list[Collected]:
    """Per region: every signal with its last seven days, contradictions, and the newest runs."""
    since = (now - SHOWN).replace(minute=0, second=0, microsecond=0) + HOUR
    conditions = condition(now=now, since=since)
    found = []
    for region in Region.objects.all():
        one = conditions.get(region.name)
        zone = ZoneInfo(region.timezone)
        # Said once, not at each signal.
        told = one.last_run if one and one.last_run and one.last_run.error_kind else None
        found.append(
            Collected(
                region,
                region.local_name,
                one.last_success_at if one else None,
                _failed(one.failed_in_a_row) if one else "",
                told.error if told else "",
                todo("", told.error_kind) if told else "",
                [_row(row, since, zone, told) for row in one.signals if not _silent(row, told)]
                if one
                else [],
                [row.signal for row in one.signals if _silent(row, told)] if one else [],
                [_said(doubt, zone) for doubt in one.doubts] if one else [],
                selectors.last_runs(region=region, most=most),
                one.coverage_ratio if one else None,
            )
        )
    return found


def _failed(times: int) -> str:
    if not times:
        return ""
    if times >= RUNS:
        return gettext("At least the last %(times)s collections failed.") % {"times": times}
    return ngettext(
        "The last collection failed.", "The last %(times)s collections failed.", times
    ) % {"times": times}


def _silent(signal: SignalCondition, told: CollectionRun | None) -> bool:
    """Asked for, and never anything came: most clusters do not have every exporter."""
    own_error = signal.error_kind and not (told and told.error_kind == signal.error_kind)
    return signal.state == "never" and not signal.observed_steps and not own_error


def _notes(signal: SignalCondition, zone: ZoneInfo) -> list[str]:
    """What is to be known of a signal beside its age."""
    notes = []
    if signal.imported_until is not None:
        until = local(signal.imported_until, zone)
        notes.append(gettext("imported until %(when)s") % {"when": until})
    if signal.partial:
        notes.append(gettext("answered only in part: figures may be too low"))
    if signal.silent_series:
        notes.append(
            gettext("%(now)s of usually %(usual)s lines have samples")
            % {"now": number(signal.hour_series), "usual": number(signal.usual_series)}
        )
    return notes


def _row(
    signal: SignalCondition, since: datetime, zone: ZoneInfo, told: CollectionRun | None
) -> SignalRow:
    # What lies before the first collection is no gap: nobody asked yet.
    before = signal.stretches[:1] if signal.stretches[0].came is Came.NOT_COLLECTED else ()
    gaps = [one for one in signal.stretches[len(before) :] if one.came is not Came.ALL]
    hours = sum(one.hours for one in gaps)
    return SignalRow(
        now=signal,
        todo=""
        if told and told.error_kind == signal.error_kind
        else todo(signal.state, signal.error_kind, partial=signal.partial),
        notes=_notes(signal, zone),
        bars=[
            Bar(
                one.came,
                (one.start - since) // HOUR,
                one.hours,
                HEIGHTS[one.came],
                _told(one, zone),
            )
            for one in signal.stretches
        ],
        gaps=[_told(one, zone) for one in reversed(gaps[-TOLD:])],
        more_gaps=max(len(gaps) - TOLD, 0),
        summary=gettext("no gaps")
        if not gaps
        else ngettext("%(count)s gap, %(hours)s", "%(count)s gaps, %(hours)s", len(gaps))
        % {"count": len(gaps), "hours": duration(hours * 3600)},
    )


def _told(stretch: Stretch, zone: ZoneInfo) -> str:
    words = {
        Came.ALL: gettext("every sample came"),
        Came.PART: gettext("some samples are missing"),
        Came.UNSURE: gettext("answered only in part"),
        Came.NOTHING: gettext("no sample came"),
        Came.NOT_COLLECTED: gettext("not collected"),
    }
    return gettext("from %(start)s for %(length)s: %(what)s") % {
        "start": local(stretch.start, zone),
        "length": duration(stretch.hours * 3600),
        "what": words[stretch.came],
    }


def todo(state: str, error_kind: str, *, partial: bool = False) -> str:
    """What to do about a signal, in a sentence; "" when nothing is to be done."""
    if error_kind:
        return FAILED.get(error_kind, _failed_somehow)()
    if partial:
        return gettext("Look at what stands behind this address: a store or a region is away.")
    if state in {"stale", "late"}:
        return gettext("Check that the collector runs and that Prometheus still scrapes this.")
    return ""


def _failed_somehow() -> str:
    return gettext("The last collection failed; it is tried again every five minutes.")


FAILED = {
    "unreachable": lambda: gettext(
        "Prometheus does not answer: check that it runs, and the address in PROMETHEUS_URL."
    ),
    "unauthorised": lambda: gettext(
        "Prometheus does not let us in: the token may have run out or lack a right."
    ),
    "not-prometheus": lambda: gettext(
        "Something else answers, often a sign-in page: check the address in PROMETHEUS_URL."
    ),
    "timed-out": lambda: gettext(
        "No answer in time. If only this signal lacks it, let Prometheus record it by a rule, or"
        " wait longer for it; if all do, the server hangs."
    ),
    "bad-catalogue": lambda: gettext(
        "The site's catalogue cannot be read: mend what is named in it (COLLECT_CATALOGUE)."
    ),
    "too-much": lambda: gettext(
        "The query asks for too much: aggregate more in it, or lower max_points in the catalogue."
    ),
    "bad-query": lambda: gettext(
        "Prometheus refuses the query: check the site's catalogue and the exporter's version."
    ),
    "broken-off": lambda: gettext(
        "The answer broke off: look at the proxy between, and at Prometheus's own log."
    ),
}


def _said(doubt: Doubt, zone: ZoneInfo) -> str:
    sentence = _DOUBTS[DoubtKind(doubt.kind)]() % {
        "subject": doubt.subject,
        "found": _figure(doubt.found),
        "against": _figure(doubt.against),
    }
    return gettext("%(sentence)s Since %(when)s.") % {
        "sentence": sentence,
        "when": local(doubt.since, zone),
    }


def _figure(value: float) -> str:
    return number(value, 0 if value == round(value) else 1)


_DOUBTS = {
    DoubtKind.HELD_OVER_INSTALLED: lambda: gettext(
        "In %(subject)s %(found)s GPUs are held, but only %(against)s are entered here."
    ),
    DoubtKind.SEEN_OVER_INSTALLED: lambda: gettext(
        "In %(subject)s %(found)s GPUs report, but only %(against)s are entered here."
    ),
    DoubtKind.QUEUE_STANDS_STILL: lambda: gettext(
        "%(found)s jobs of %(subject)s wait, and for a day none arrived or was admitted:"
        " the exporter or the queue stands still."
    ),
    DoubtKind.HELD_AGAINST_RECORDS: lambda: gettext(
        "In %(subject)s the scheduler says that %(found)s GPUs are held, the job records say"
        " %(against)s."
    ),
    DoubtKind.CLOCK_OFF: lambda: gettext(
        "A clock of this region is %(found)s s off: ages and waits are wrong by as much."
    ),
}
