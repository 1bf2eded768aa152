"""The dashboards' pages: what is the matter, who has what, who waits, how good the data is."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone

from portal import http
from portal.access import viewer
from portal.accounts.models import User
from portal.dashboards import (
    collecting,
    overviews,
    pages,
    project_pages,
    selectors,
    sentences,
    windows,
)
from portal.dashboards.attention import worst_first
from portal.dashboards.windows import Window
from portal.fleet.models import Pool, Region
from portal.tenants.models import Project
from portal.tenants.selectors import requestable_projects, visible_projects

OLDEST_REQUESTS = 5
LAST_RUNS = 10


def _window(request: HttpRequest, *, zone: str, now: datetime) -> Window:
    return windows.window(request.GET.get("range", windows.DEFAULT), now=now, zone=ZoneInfo(zone))


def overview(request: HttpRequest) -> HttpResponse:
    """What matters now: for ops and auditors every region, for leads their own quota and waits."""
    user, now = viewer(request), timezone.now()
    window = _window(request, zone=settings.REPORT_TIMEZONE, now=now)
    context: dict[str, object] = {
        "now": now,
        "window": window,
        "requests": selectors.open_requests(user, most=OLDEST_REQUESTS),
    }
    if user.sees_all_tenants:
        return render(request, "dashboards/overview.html", context | _all(user, now))
    names = sorted(selectors.names_seen(user))
    context |= {
        "own": project_pages.own(projects=names, window=window, now=now),
        "projects": names,
        "may_ask": requestable_projects(user).exists(),
        "ranges": windows.switch(window, now=now),
    }
    return render(request, "dashboards/overview.html", context)


def _all(user: User, now: datetime) -> dict[str, object]:
    """Every region with what needs attention there."""
    zone = ZoneInfo(settings.REPORT_TIMEZONE)
    found = overviews.all_regions(now=now)
    return {
        "regions": found,
        "attentions": sentences.say(
            worst_first(item for place in found for item in place.attentions),
            seen=selectors.names_seen(user),
            zone=zone,
            now=now,
            places={place.region.name: place.label for place in found},
        ),
    }


def regions(request: HttpRequest) -> HttpResponse:
    """Every region: free GPUs first, use, waits, and how fresh that is."""
    now = timezone.now()
    return render(
        request, "dashboards/regions.html", {"regions": overviews.all_regions(now=now), "now": now}
    )


def _region_page(request: HttpRequest, name: str, now: datetime) -> pages.RegionPage:
    place = get_object_or_404(Region, name=name)
    window = _window(request, zone=place.timezone, now=now)
    csv_url = f"{reverse('dashboards:region_csv', args=[name])}?range={window.key}"
    return pages.region_page(region=place, window=window, now=now, csv_url=csv_url)


def region(request: HttpRequest, name: str) -> HttpResponse:
    """A region: what is the matter, its figures, compute, queue and storage on one axis, pools."""
    now = timezone.now()
    page = _region_page(request, name, now)
    seen = selectors.names_seen(viewer(request))
    context = {
        "page": page,
        "label": page.region.local_name,
        "now": now,
        "ranges": windows.switch(page.window, now=now),
        "attentions": sentences.say(page.attentions, seen=seen, zone=page.window.zone, now=now),
    }
    return render(request, "dashboards/region.html", context)


def region_csv(request: HttpRequest, name: str) -> HttpResponse:
    """The hours behind the region page's chart, as a file."""
    page = _region_page(request, name, timezone.now())
    return http.csv_response(page.table, f"{name}-{page.window.key}.csv")


def _pool_page(
    request: HttpRequest, name: str, now: datetime
) -> tuple[Pool, Window, project_pages.PoolPage]:
    pool = get_object_or_404(
        Pool.objects.select_related("domain__region", "storage__domain"), name=name
    )
    window = _window(request, zone=pool.domain.region.timezone, now=now)
    page = project_pages.pool_page(
        pool=pool,
        seen=selectors.names_seen(viewer(request)),
        window=window,
        now=now,
        csv_url=f"{reverse('dashboards:pool_csv', args=[name])}?range={window.key}",
    )
    return pool, window, page


def pool(request: HttpRequest, name: str) -> HttpResponse:
    """A pool: quota by project, who holds it over time, who waits for it."""
    now = timezone.now()
    place, window, page = _pool_page(request, name, now)
    context = {
        "pool": place,
        "region_label": place.domain.region.local_name,
        "page": page,
        "window": window,
        "now": now,
        "ranges": windows.switch(window, now=now),
    }
    return render(request, "dashboards/pool.html", context)


def pool_csv(request: HttpRequest, name: str) -> HttpResponse:
    """The hours behind the pool page's chart, as a file; projects one may not see as `others`."""
    _pool, window, page = _pool_page(request, name, timezone.now())
    return http.csv_response(page.table, f"{name}-{window.key}.csv")


def projects(request: HttpRequest) -> HttpResponse:
    """The projects one may see: what they have, hold, wait for and lost."""
    now = timezone.now()
    window = _window(request, zone=settings.REPORT_TIMEZONE, now=now)
    found = list(visible_projects(viewer(request)))
    context = {
        "rows": overviews.project_rows(projects=found, window=window, now=now),
        "window": window,
        "now": now,
        "ranges": windows.switch(window, now=now),
    }
    return render(request, "dashboards/projects.html", context)


def _project_page(
    request: HttpRequest, name: str, now: datetime
) -> tuple[Project, Window, project_pages.ProjectPage]:
    project = get_object_or_404(visible_projects(viewer(request)), name=name)
    window = _window(request, zone=settings.REPORT_TIMEZONE, now=now)
    csv_url = f"{reverse('dashboards:project_csv', args=[name])}?range={window.key}"
    page = project_pages.project_page(project=project, window=window, now=now, csv_url=csv_url)
    return project, window, page


def project(request: HttpRequest, name: str) -> HttpResponse:
    """A project: its quota per pool, its waits, its jobs and why they wait, what it lost."""
    now = timezone.now()
    found, window, page = _project_page(request, name, now)
    context = {
        "project": found,
        "page": page,
        "window": window,
        "now": now,
        "ranges": windows.switch(window, now=now),
        "may_ask": requestable_projects(viewer(request)).filter(pk=found.pk).exists(),
    }
    return render(request, "dashboards/project.html", context)


def project_csv(request: HttpRequest, name: str) -> HttpResponse:
    """The hours behind the project page's chart, as a file."""
    _project, window, page = _project_page(request, name, timezone.now())
    return http.csv_response(page.table, f"{name}-{window.key}.csv")


def collection(request: HttpRequest) -> HttpResponse:
    """How good the data is: per region and signal the newest sample, what went wrong."""
    now = timezone.now()
    context = {
        "places": collecting.page(now=now, most=LAST_RUNS),
        "now": now,
        "overseer": viewer(request).sees_all_tenants,
    }
    return render(request, "dashboards/collection.html", context)
