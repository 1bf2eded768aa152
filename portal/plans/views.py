"""Plans as pages: the list, one plan, its outcome as it comes, and its files."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from planner.scenario import dumps
from portal.access import overseers_only, viewer
from portal.accounts.models import User
from portal.plans import scenarios, selectors, services, verdicts
from portal.plans.models import Plan, PlanState

PER_PAGE = 50


@require_GET
def index(request: HttpRequest) -> HttpResponse:
    """The plans this person may see, newest first."""
    plans = selectors.visible_plans(viewer(request)).defer("baseline", "proposal", "outcome")
    page = Paginator(plans, PER_PAGE).get_page(request.GET.get("page"))
    return render(request, "plans/index.html", {"page": page, "now": timezone.now()})


@require_GET
def detail(request: HttpRequest, pk: int) -> HttpResponse:
    """One plan: what it changes, what came out, and its files."""
    user, plan = _found(request, pk)
    context = outcome_context(plan, user, timezone.now()) | {"changes": selectors.changes(plan)}
    return render(request, "plans/detail.html", context)


@require_GET
def outcome(request: HttpRequest, pk: int) -> HttpResponse:
    """How far a plan is, or what came out: a fragment that asks again while there is no end."""
    user, plan = _found(request, pk)
    beside = request.GET.get("guarantees") == "beside"
    context = outcome_context(plan, user, timezone.now(), without_guarantees=beside)
    return render(request, "plans/_outcome.html", context)


@require_GET
@overseers_only
def download(request: HttpRequest, pk: int) -> HttpResponse:
    """A plan's scenario as a file that `python -m planner` reads, with the jobs of all tenants."""
    _user, plan = _found(request, pk)
    which = request.GET.get("scenario", "baseline")
    if which not in {"baseline", "proposal"}:
        return HttpResponseBadRequest(_("Ask for scenario=baseline or scenario=proposal."))
    mapping = plan.baseline if which == "baseline" else plan.proposal
    text = dumps(scenarios.thaw(mapping, bytes(plan.workload.jobs)), fmt="json")
    response = HttpResponse(text, content_type="application/json")
    response["Content-Disposition"] = f'attachment; filename="plan-{plan.pk}-{which}.json"'
    return response


@require_POST
def cancel(request: HttpRequest, pk: int) -> HttpResponse:
    """Calls a waiting or running plan off."""
    user, plan = _steered(request, pk)
    now = timezone.now()
    services.cancel(plan=plan, now=now)
    if getattr(request, "htmx", False):
        plan.refresh_from_db()
        return render(request, "plans/_outcome.html", outcome_context(plan, user, now))
    return redirect("plans:detail", pk=plan.pk)


@require_POST
def again(request: HttpRequest, pk: int) -> HttpResponse:
    """Simulates the same change again, against what is in force now."""
    user, plan = _steered(request, pk)
    fresh = services.again(plan=plan, by=user, now=timezone.now())
    if fresh.pk == plan.pk:
        messages.info(request, _("Nothing has changed since: this is the newest result."))
    return redirect("plans:detail", pk=fresh.pk)


def _found(request: HttpRequest, pk: int) -> tuple[User, Plan]:
    user = viewer(request)
    return user, get_object_or_404(selectors.visible_plans(user), pk=pk)


def _steered(request: HttpRequest, pk: int) -> tuple[User, Plan]:
    user, plan = _found(request, pk)
    if not selectors.may_steer(user, plan):
        raise PermissionDenied
    return user, plan


def outcome_context(
    plan: Plan, user: User, now: datetime, *, without_guarantees: bool = False
) -> dict[str, Any]:
    """What `plans/_outcome.html` shows; pages that include it ask here too.

    `without_guarantees`: the page says beside it what the pool promises, also while it polls.
    """
    result = selectors.outcome(plan=plan, user=user)
    return {
        "plan": plan,
        "now": now,
        "zone": settings.REPORT_TIMEZONE,
        "pending": plan.state in {PlanState.QUEUED, PlanState.RUNNING},
        "may_steer": selectors.may_steer(user, plan),
        "without_guarantees": without_guarantees,
        "result": result,
        "verdict": verdicts.sentences(result) if result else [],
        "guarantees": [
            (guarantee, verdicts.guarantee_sentences(guarantee))
            for guarantee in (result.guarantees if result and not without_guarantees else ())
        ],
        "stale": plan.state == PlanState.DONE and services.is_stale(plan=plan, now=now),
        "observed_last": plan.workload.observed_to - timedelta(seconds=1),
        "observed_days": (plan.workload.observed_to - plan.workload.observed_from).days,
    }
