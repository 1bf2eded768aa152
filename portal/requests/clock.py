"""What the clock does to granted requests: into force, near the end, over."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction

from portal.requests import rules, steps
from portal.requests.models import QuotaRequest, RequestState, Verb
from portal.requests.steps import RefusedError

# Notice before the end: the longest of these that is at most half of the granted time.
NOTICES = (timedelta(days=30), timedelta(days=7), timedelta(days=1))


def advance(*, now: datetime) -> int:
    """Moves every granted request along to where the clock says it is; returns how many moved.

    Running it twice, or in two workers at once, changes nothing more.
    """
    moved = 0
    live = (RequestState.SCHEDULED, RequestState.ACTIVE, RequestState.EXPIRING)
    for pk in QuotaRequest.objects.filter(state__in=live).values_list("pk", flat=True):
        with transaction.atomic():
            request = QuotaRequest.objects.select_for_update().get(pk=pk)
            before = request.state
            try:
                moved += along(request, now=now).state != before
            except RefusedError:  # another worker moved it this very moment
                continue
    return moved


def along(request: QuotaRequest, *, now: datetime) -> QuotaRequest:
    """Takes one request as far as the clock says."""
    if request.state == RequestState.SCHEDULED and request.starts_at <= now:
        # Re-validated when applied: somebody may have cancelled or replaced the row by hand.
        verb = Verb.SUPERSEDE if rules.overtaken(request, now=now) else Verb.ACTIVATE
        request = steps.move(request, verb, by=None, now=now)
        if verb is Verb.ACTIVATE and request.ends_at is None:
            _supersede_earlier(request, now=now)
    if request.state in {RequestState.ACTIVE, RequestState.EXPIRING} and request.ends_at:
        if request.ends_at <= now:
            return steps.move(request, Verb.EXPIRE, by=None, now=now)
        granted_time = request.ends_at - request.starts_at
        notice = next((days for days in NOTICES if days <= granted_time / 2), timedelta(0))
        if request.state == RequestState.ACTIVE and request.ends_at - notice <= now:
            return steps.move(request, Verb.NEAR_END, by=None, now=now)
    return request


def _supersede_earlier(request: QuotaRequest, *, now: datetime) -> None:
    earlier = QuotaRequest.objects.filter(
        project_id=request.project_id, pool_id=request.pool_id, state=RequestState.ACTIVE,
        ends_at=None,
    ).exclude(pk=request.pk)  # fmt: skip
    for other in earlier:
        steps.move(other, Verb.SUPERSEDE, by=None, now=now)
