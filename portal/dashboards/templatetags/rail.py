"""The rail beside every page: where one can go, what waits there, and the regions."""

from __future__ import annotations

from typing import Any

from django import template
from django.db.models import F, Sum
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext

from portal.fleet.models import Region
from portal.requests.selectors import pending_count

register = template.Library()


def _address(name: str) -> str:
    try:
        return reverse(name)
    except NoReverseMatch:
        return ""


@register.inclusion_tag("_rail.html", takes_context=True)
def rail(context: dict[str, Any]) -> dict[str, object]:
    """The rail, the current page marked."""
    request = context["request"]
    user = request.user
    match = getattr(request, "resolver_match", None)
    here = match.view_name if match else ""
    name = match.kwargs.get("name") if match else None
    pages = [
        (gettext("Overview"), "dashboards:overview", {"dashboards:overview"}),
        (
            gettext("Regions"),
            "dashboards:regions",
            {"dashboards:regions", "dashboards:region", "dashboards:pool"},
        ),
        (gettext("Projects"), "dashboards:projects", {"dashboards:projects", "dashboards:project"}),
        (gettext("Requests"), "requests:index", {"requests"}),
        (gettext("Plans"), "plans:index", {"plans"}),
        (gettext("Weekly report"), "reports:latest", {"reports"}),
        (gettext("Data quality"), "dashboards:collection", {"dashboards:collection"}),
    ]
    entries = [
        {
            "label": label,
            "url": _address(target),
            "on": here in places or here.split(":")[0] in places,
            "count": pending_count(user) if target == "requests:index" else None,
            "count_title": gettext("waiting for a decision"),
        }
        for label, target, places in pages
    ]
    regions = [
        {
            "label": region.local_name,
            "url": reverse("dashboards:region", args=[region.name]),
            "on": here == "dashboards:region" and name == region.name,
            "gpus": region.gpus,
        }
        for region in Region.objects.annotate(
            gpus=Sum(F("domains__pools__nodes") * F("domains__pools__gpus_per_node"))
        ).order_by("pk")
    ]
    return {"entries": entries, "regions": regions}
