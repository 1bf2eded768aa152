"""The dashboards' pages."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone

from portal import http
from portal.access import viewer
from portal.dashboards import pages, selectors, sentences, windows
from portal.dashboards.templatetags.rail import region_label
from portal.fleet.models import Pool, Region


def overview(request: HttpRequest) -> HttpResponse:
    """What matters now, by role."""
    return render(request, "dashboards/overview.html")


def regions(request: HttpRequest) -> HttpResponse:
    """Every region, free GPUs first."""
    return render(request, "dashboards/overview.html")


def _region_page(request: HttpRequest, name: str) -> pages.RegionPage:
    place = get_object_or_404(Region, name=name)
    now = timezone.now()
    window = windows.window(
        request.GET.get("range", windows.DEFAULT), now=now, zone=ZoneInfo(place.timezone)
    )
    csv_url = f"{reverse('dashboards:region_csv', args=[name])}?range={window.key}"
    return pages.region_page(region=place, window=window, now=now, csv_url=csv_url)


def region(request: HttpRequest, name: str) -> HttpResponse:
    """A region: what is the matter, its figures, compute, queue and storage on one axis, pools."""
    now = timezone.now()
    page = _region_page(request, name)
    return render(
        request,
        "dashboards/region.html",
        {
            "page": page,
            "label": region_label(page.region),
            "now": now,
            "ranges": windows.switch(page.window, now=now),
            "attentions": sentences.say(
                page.attentions,
                seen=selectors.names_seen(viewer(request)),
                zone=page.window.zone,
                now=now,
            ),
        },
    )


def region_csv(request: HttpRequest, name: str) -> HttpResponse:
    """The hours behind the region page's chart, as a file."""
    page = _region_page(request, name)
    return http.csv_response(page.table, f"{name}-{page.window.key}.csv")


def pool(request: HttpRequest, name: str) -> HttpResponse:
    """One pool."""
    return render(request, "dashboards/overview.html")


def projects(request: HttpRequest) -> HttpResponse:
    """The projects one may see."""
    return render(request, "dashboards/overview.html")


def project(request: HttpRequest, name: str) -> HttpResponse:
    """One project."""
    return render(request, "dashboards/overview.html")


def collection(request: HttpRequest) -> HttpResponse:
    """How good the data is."""
    return render(request, "dashboards/overview.html")
