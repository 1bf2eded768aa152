"""What people do to a request. Every step is looked up in one table and leaves a trail."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.utils.translation import gettext as _

from portal.accounts.models import User
from portal.fleet.models import Pool
from portal.plans import services as plans
from portal.plans.models import Plan, PlanState
from portal.policy import services as policy
from portal.requests import clock, rules, selectors, steps, transitions
from portal.requests.models import QuotaRequest, Verb
from portal.requests.steps import RefusedError
from portal.requests.transitions import Actor
from portal.tenants.models import Project


def draft(
    *,
    project: Project,
    pool: Pool,
    extra_gpus: int,
    starts_at: datetime,
    ends_at: datetime | None,
    justification: str,
    by: User,
    now: datetime,
) -> QuotaRequest:
    """Keeps a wish that only those who may ask for the project can see.

    Raises PermissionDenied or RefusedError.
    """
    request = QuotaRequest(
        project=project,
        pool=pool,
        extra_gpus=extra_gpus,
        starts_at=starts_at,
        ends_at=ends_at,
        justification=justification.strip(),
        requested_by=by,
        base_nominal_gpus=rules.base(project=project, pool=pool, starts_at=starts_at, now=now),
    )
    if Actor.ASKER not in selectors.actors(by, request):
        raise PermissionDenied(_("You may ask only for projects that you lead or administer."))
    rules.check(request, now=now)
    with transaction.atomic():
        request.save()
        steps.record(request, Verb.DRAFT, origin="", by=by, now=now)
    return request


def ask(
    *,
    project: Project,
    pool: Pool,
    extra_gpus: int,
    starts_at: datetime,
    ends_at: datetime | None,
    justification: str,
    by: User,
    now: datetime,
) -> QuotaRequest:
    """Drafts and submits in one go; when it is refused nothing is kept."""
    with transaction.atomic():
        request = draft(
            project=project, pool=pool, extra_gpus=extra_gpus, starts_at=starts_at,
            ends_at=ends_at, justification=justification, by=by, now=now,
        )  # fmt: skip
        return submit(request=request, by=by, now=now)


def submit(*, request: QuotaRequest, by: User, now: datetime) -> QuotaRequest:
    """Hands a draft to ops, with its effect simulated against what is in force now."""
    with transaction.atomic():
        request = steps.locked(request)
        steps.may(request, Verb.SUBMIT, by)
        rules.check(request, now=now)
        rules.refuse_second(request)
        fields = _simulated(request, now=now)
        return steps.move(request, Verb.SUBMIT, by=by, now=now, submitted_at=now, **fields)


def edit(
    *,
    request: QuotaRequest,
    extra_gpus: int,
    starts_at: datetime,
    ends_at: datetime | None,
    justification: str,
    by: User,
    now: datetime,
) -> QuotaRequest:
    """Changes a draft or a pending request; a pending one is simulated again."""
    with transaction.atomic():
        request = steps.locked(request)
        steps.may(request, Verb.EDIT, by)
        before = _terms(request)
        request.extra_gpus, request.justification = extra_gpus, justification
        request.starts_at, request.ends_at = starts_at, ends_at
        request.base_nominal_gpus = rules.base_of(request, now=now)
        rules.check(request, now=now)
        fields: dict[str, Any] = {
            "extra_gpus": extra_gpus,
            "justification": justification,
            "starts_at": starts_at,
            "ends_at": ends_at,
            "base_nominal_gpus": request.base_nominal_gpus,
        }
        if request.is_pending:
            fields |= _simulated(request, now=now)
        return steps.move(request, Verb.EDIT, by=by, now=now, comment=before, **fields)


def simulate(*, request: QuotaRequest, by: User, now: datetime) -> QuotaRequest:
    """Simulates a pending request against what is in force now."""
    with transaction.atomic():
        request = steps.locked(request)
        steps.may(request, Verb.SIMULATE, by)
        request.base_nominal_gpus = rules.base_of(request, now=now)
        rules.check(request, now=now)
        fields = _simulated(request, now=now)
        return steps.move(request, Verb.SIMULATE, by=by, now=now, **fields)


def comment(*, request: QuotaRequest, text: str, by: User, now: datetime) -> None:
    """Asks or answers on the request's trail."""
    if not text.strip():
        raise RefusedError(_("Write what you want to ask or say."))
    with transaction.atomic():
        request = steps.locked(request)
        steps.may(request, Verb.COMMENT, by)
        steps.move(request, Verb.COMMENT, by=by, now=now, comment=rules.short(text))


def open_review(*, request: QuotaRequest, by: User, now: datetime) -> QuotaRequest:
    """Marks a submitted request as being looked at, when who looks is to decide it."""
    if transitions.allowed(Verb.OPEN, request.state, selectors.actors(by, request)):
        try:
            with transaction.atomic():
                return steps.move(request, Verb.OPEN, by=by, now=now)
        except RefusedError:  # somebody opened, edited or withdrew it this very moment
            request.refresh_from_db()
    return request


def withdraw(*, request: QuotaRequest, by: User, now: datetime) -> QuotaRequest:
    """Takes back a request that was not decided yet."""
    with transaction.atomic():
        request = steps.locked(request)
        steps.may(request, Verb.WITHDRAW, by)
        return steps.move(request, Verb.WITHDRAW, by=by, now=now)


def approve(
    *,
    request: QuotaRequest,
    by: User,
    now: datetime,
    granted_extra_gpus: int | None = None,
    reason: str = "",
    seen: int | None = None,
) -> QuotaRequest:
    """Grants a request, whole or in part, and writes the quota rows that put it in force.

    `seen` is the mark (`mark`) of the page on which it was decided. Refused when the request or
    the quota it was simulated against has changed since: a decision never applies to another base.
    """
    verb = Verb.APPROVE if granted_extra_gpus is None else Verb.APPROVE_PART
    with transaction.atomic():
        request = steps.locked(request)
        steps.may(request, verb, by)
        rules.unchanged(request, seen)
        granted = request.extra_gpus if granted_extra_gpus is None else granted_extra_gpus
        if verb is Verb.APPROVE_PART and not rules.is_part(granted, request.extra_gpus):
            raise RefusedError(
                _("A part of %(asked)+d GPUs is more than none and less than all of them.")
                % {"asked": request.extra_gpus}
            )
        starts_at = max(request.starts_at, now)
        if request.ends_at is not None and request.ends_at <= starts_at:
            raise RefusedError(
                _("The time asked for is over. Deny the request, or ask for another time.")
            )
        rules.same_base(request, now=now)
        try:
            rows = policy.change_quota(
                project=request.project,
                pool=request.pool,
                nominal_gpus=request.base_nominal_gpus + granted,
                starts_at=starts_at,
                ends_at=request.ends_at,
                by=by,
                because=_("request %(number)d") % {"number": request.pk},
                now=now,
            )
        except policy.QuotaConflict as conflict:
            raise RefusedError(str(conflict)) from conflict
        reason = rules.short(reason)
        request = steps.move(
            request, verb, by=by, now=now, comment=reason, decided_by=by, decided_at=now,
            decision_reason=reason, granted_extra_gpus=granted, starts_at=starts_at,
        )  # fmt: skip
        request.rows.set(rows)
        request = steps.move(request, Verb.SCHEDULE, by=None, now=now)
        return clock.along(request, now=now)


def deny(
    *, request: QuotaRequest, reason: str, by: User, now: datetime, seen: int | None = None
) -> QuotaRequest:
    """Refuses a request, with the reason that its requester will read."""
    if not reason.strip():
        raise RefusedError(_("Say why: a request is denied only with a reason."))
    with transaction.atomic():
        request = steps.locked(request)
        steps.may(request, Verb.DENY, by)
        rules.unchanged(request, seen)
        return steps.move(
            request, Verb.DENY, by=by, now=now, comment=rules.short(reason), decided_by=by,
            decided_at=now, decision_reason=rules.short(reason),
        )  # fmt: skip


def undo(*, request: QuotaRequest, by: User, now: datetime) -> QuotaRequest:
    """Takes back an approval before it comes into force: as if it had not been decided."""
    with transaction.atomic():
        request = steps.locked(request)
        steps.may(request, Verb.UNDO, by)
        if request.starts_at <= now:
            raise RefusedError(_("The change is in force already; it can be revoked, not undone."))
        try:
            policy.cancel(rows=list(request.rows.filter(cancelled_at=None)), by=by, now=now)
        except policy.QuotaConflict as conflict:
            raise RefusedError(str(conflict)) from conflict
        rules.refuse_second(request)
        request.rows.clear()
        return steps.move(
            request, Verb.UNDO, by=by, now=now, decided_by=None, decided_at=None,
            decision_reason="", granted_extra_gpus=None,
        )  # fmt: skip


def revoke(*, request: QuotaRequest, reason: str, by: User, now: datetime) -> QuotaRequest:
    """Ends a granted change before its time: the quota goes back to what it was, now."""
    if not reason.strip():
        raise RefusedError(_("Say why: quota is revoked only with a reason."))
    with transaction.atomic():
        request = steps.locked(request)
        steps.may(request, Verb.REVOKE, by)
        rules.refuse_overtaken(request, now=now)
        try:
            policy.cancel(
                rows=list(request.rows.filter(cancelled_at=None, starts_at__gt=now)),
                by=by,
                now=now,
            )
            policy.change_quota(
                project=request.project,
                pool=request.pool,
                nominal_gpus=request.base_nominal_gpus,
                starts_at=now,
                by=by,
                because=_("request %(number)d revoked") % {"number": request.pk},
                now=now,
            )
        except policy.QuotaConflict as conflict:
            raise RefusedError(str(conflict)) from conflict
        return steps.move(request, Verb.REVOKE, by=by, now=now, comment=rules.short(reason))


def call_off_earlier(*, plan: Plan, by: User, now: datetime) -> None:
    """Calls off what the same person's form had simulated before `plan` and no request uses.

    Each pause while the form is filled in queues a simulation; only the last one is still wanted.
    """
    waiting = (PlanState.QUEUED, PlanState.RUNNING)
    earlier = Plan.objects.filter(
        created_by=by, project=plan.project, requests=None, state__in=waiting
    )
    for one in earlier.exclude(pk=plan.pk):
        plans.cancel(plan=one, now=now)


def _simulated(request: QuotaRequest, *, now: datetime) -> dict[str, Any]:
    """The plan of a request, queued, and the base it stands on.

    Asked for in the requester's name whoever presses the button, so that they may read it.
    """
    plan: Plan = plans.queue_quota_change(
        project=request.project,
        pool=request.pool,
        extra_gpus=request.extra_gpus,
        starts_at=max(request.starts_at, now),
        by=request.requested_by,
        now=now,
    )
    return {"plan": plan, "base_nominal_gpus": rules.base_of(request, now=now)}


def _terms(request: QuotaRequest) -> str:
    """What a request asked for, kept on the trail when it is changed."""
    until = "–" if request.ends_at is None else f"{request.ends_at:%Y-%m-%d %H:%M} UTC"
    asked_from = f"{request.starts_at:%Y-%m-%d %H:%M} UTC"
    return _("Before: %(gpus)+d GPUs, from %(start)s until %(end)s. %(why)s") % {
        "gpus": request.extra_gpus,
        "start": asked_from,
        "end": until,
        "why": request.justification,
    }
