"""The weekly report: the last closed week, any week, and the same figures as a file."""

from __future__ import annotations

from datetime import timedelta
from zoneinfo import ZoneInfo

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from portal.access import viewer
from portal.exhibits import Exhibit
from portal.http import Week, csv_response
from portal.reports import definitions, figures, selectors, tables
from portal.reports.selectors import Report


def zone() -> ZoneInfo:
    """The zone in which weeks are cut."""
    return ZoneInfo(settings.REPORT_TIMEZONE)


def latest(request: HttpRequest) -> HttpResponse:
    """Leads to the last week that is over and fully known."""
    return redirect("reports:week", str(selectors.latest_week(zone=zone(), now=timezone.now())))


def week(request: HttpRequest, name: str) -> HttpResponse:
    """A week: who got what they were entitled to, who waited, what was lost."""
    found = _parsed(name)
    if found is None:
        return _no_such_week(request, name)
    report = _report(request, found)
    following = found.shifted(1)
    return render(
        request,
        "reports/week.html",
        {
            "report": report,
            "zone_name": f"{report.starts_at.astimezone(zone()):%Z}",
            "last_day": report.ends_at - timedelta(seconds=1),
            "previous": found.shifted(-1),
            "following": None if following.window(zone())[0] > report.generated_at else following,
            "headline": tables.headline(report.figures, open_week=report.is_open),
            "totals": tables.totals(report.figures),
            "sections": tables.sections(report.figures),
            "exhibits": _exhibits(report),
            "definitions": definitions.METRICS,
            "rounding": definitions.ROUNDING,
            "version": definitions.version(),
        },
    )


def week_csv(request: HttpRequest, name: str) -> HttpResponse:
    """The week's figures as a file: the frame that the page shows."""
    found = _parsed(name)
    if found is None:
        return _no_such_week(request, name)
    return csv_response(_report(request, found).file(), f"sekisho-{found}.csv")


def definitions_csv(request: HttpRequest) -> HttpResponse:
    """What each column of the file means, as a file."""
    return csv_response(definitions.frame(), f"sekisho-definitions-{definitions.version()}.csv")


def _report(request: HttpRequest, found: Week) -> Report:
    return selectors.report(week=found, zone=zone(), viewer=viewer(request), now=timezone.now())


def _parsed(name: str) -> Week | None:
    try:
        return Week.parse(name)
    except ValueError:
        return None


def _no_such_week(request: HttpRequest, name: str) -> HttpResponse:
    return render(request, "reports/_no_such_week.html", {"name": name}, status=404)


def _exhibits(report: Report) -> list[Exhibit]:
    csv_url = reverse("reports:week_csv", args=[str(report.week)])
    words = {"p50": _("median"), "p90": _("p90"), "longest": _("longest")}
    frame = report.figures
    delivered = frame.loc[
        (frame["scope"] == "project"),
        ["name", "entitled_gpu_hours", "delivered_gpu_hours", "delivered_entitled_ratio"],
    ]
    waits = frame.loc[
        (frame["scope"] == "lane"),
        ["name", *(f"first_wait_{quantile}_minutes" for quantile in words), "still_waiting"],
    ]
    return [
        Exhibit(
            slug="delivered",
            title=_("Delivered against entitled, by project"),
            figure=figures.delivered_chart(frame, axis=_("delivered ÷ entitled")),
            table=delivered,
            csv_url=csv_url,
            note=_("the line marks 100 %"),
            summary=_("Bars: delivered ÷ entitled of each project, least served on top."),
            why_empty=_("None of your projects had an entitlement in this week."),
        ),
        Exhibit(
            slug="waits",
            title=_("Wait for the first start, by lane"),
            figure=figures.waits_chart(frame, axis=_("hours"), names=words),
            table=waits,
            csv_url=csv_url,
            note=_("median solid, p90 pale, a mark at the longest"),
            summary=_("Bars: median and p90 wait of each lane in hours, a mark at the longest."),
            why_empty=_("No job waited in this week."),
        ),
    ]
