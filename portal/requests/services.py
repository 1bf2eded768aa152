"""What people and the clock do to a request. Every step is looked up in one table and leaves a
trail.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from portal.accounts.models import User
from portal.fleet.models import Pool
from portal.plans import services as plans
from portal.plans.models import Plan
from portal.policy import selectors as policy_selectors
from portal.policy import services as policy
from portal.requests import selectors, transitions
from portal.requests.models import PENDING, QuotaRequest, RequestEvent, RequestState, Verb
from portal.requests.transitions import Actor
from portal.tenants.models import Project

# Notice before the end: the longest of these that is at most half of the granted time.
NOTICES = (timedelta(days=30), timedelta(days=7), timedelta(days=1))
MOST_CHARACTERS = 2000  # of a justification, a reason, a comment
# Steps after which an opened page no longer shows what would be decided.
_CONTENT = (Verb.SUBMIT, Verb.EDIT, Verb.SIMULATE, Verb.UNDO)


class RefusedError(Exception):
    """A step that cannot be taken; the sentence says why and what to do instead."""

    def __init__(
        self, sentence: str, *, other: QuotaRequest | None = None, simulate_again: bool = False
    ) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.other = other
        self.simulate_again = simulate_again


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
        base_nominal_gpus=_base(project=project, pool=pool, starts_at=starts_at, now=now),
    )
    if Actor.ASKER not in selectors.actors(by, request):
        raise PermissionDenied(_("You may ask only for projects that you lead or administer."))
    _check(request, now=now)
    with transaction.atomic():
        request.save()
        _record(request, Verb.DRAFT, origin="", by=by, now=now)
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
        request = _locked(request)
        _may(request, Verb.SUBMIT, by)
        _check(request, now=now)
        _refuse_second(request)
        fields = _simulated(request, now=now)
        return _move(request, Verb.SUBMIT, by=by, now=now, submitted_at=now, **fields)


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
        request = _locked(request)
        _may(request, Verb.EDIT, by)
        before = _terms(request)
        request.extra_gpus, request.justification = extra_gpus, justification
        request.starts_at, request.ends_at = starts_at, ends_at
        request.base_nominal_gpus = _base_of(request, now=now)
        _check(request, now=now)
        fields: dict[str, Any] = {
            "extra_gpus": extra_gpus,
            "justification": justification,
            "starts_at": starts_at,
            "ends_at": ends_at,
            "base_nominal_gpus": request.base_nominal_gpus,
        }
        if request.is_pending:
            fields |= _simulated(request, now=now)
        return _move(request, Verb.EDIT, by=by, now=now, comment=before, **fields)


def simulate(*, request: QuotaRequest, by: User, now: datetime) -> QuotaRequest:
    """Simulates a pending request against what is in force now."""
    with transaction.atomic():
        request = _locked(request)
        _may(request, Verb.SIMULATE, by)
        request.base_nominal_gpus = _base_of(request, now=now)
        _check(request, now=now)
        fields = _simulated(request, now=now)
        return _move(request, Verb.SIMULATE, by=by, now=now, **fields)


def comment(*, request: QuotaRequest, text: str, by: User, now: datetime) -> None:
    """Asks or answers on the request's trail."""
    if not text.strip():
        raise RefusedError(_("Write what you want to ask or say."))
    with transaction.atomic():
        request = _locked(request)
        _may(request, Verb.COMMENT, by)
        _move(request, Verb.COMMENT, by=by, now=now, comment=_short(text))


def open_review(*, request: QuotaRequest, by: User, now: datetime) -> QuotaRequest:
    """Marks a submitted request as being looked at, when who looks is to decide it."""
    if transitions.allowed(Verb.OPEN, request.state, selectors.actors(by, request)):
        try:
            with transaction.atomic():
                return _move(request, Verb.OPEN, by=by, now=now)
        except RefusedError:  # somebody opened, edited or withdrew it this very moment
            request.refresh_from_db()
    return request


def withdraw(*, request: QuotaRequest, by: User, now: datetime) -> QuotaRequest:
    """Takes back a request that was not decided yet."""
    with transaction.atomic():
        request = _locked(request)
        _may(request, Verb.WITHDRAW, by)
        return _move(request, Verb.WITHDRAW, by=by, now=now)


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
        request = _locked(request)
        _may(request, verb, by)
        _unchanged(request, seen)
        granted = request.extra_gpus if granted_extra_gpus is None else granted_extra_gpus
        if verb is Verb.APPROVE_PART and not _is_part(granted, request.extra_gpus):
            raise RefusedError(
                _("A part of %(asked)+d GPUs lies between 0 and %(asked)+d, without both.")
                % {"asked": request.extra_gpus}
            )
        starts_at = max(request.starts_at, now)
        if request.ends_at is not None and request.ends_at <= starts_at:
            raise RefusedError(
                _("The time asked for is over. Deny the request, or ask for another time.")
            )
        _same_base(request, now=now)
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
        request = _move(
            request, verb, by=by, now=now, comment=_short(reason), decided_by=by, decided_at=now,
            decision_reason=_short(reason), granted_extra_gpus=granted, starts_at=starts_at,
        )  # fmt: skip
        request.rows.set(rows)
        request = _move(request, Verb.SCHEDULE, by=None, now=now)
        return _along(request, now=now)


def deny(
    *, request: QuotaRequest, reason: str, by: User, now: datetime, seen: int | None = None
) -> QuotaRequest:
    """Refuses a request, with the reason that its requester will read."""
    if not reason.strip():
        raise RefusedError(_("Say why: a request is denied only with a reason."))
    with transaction.atomic():
        request = _locked(request)
        _may(request, Verb.DENY, by)
        _unchanged(request, seen)
        return _move(
            request, Verb.DENY, by=by, now=now, comment=_short(reason), decided_by=by,
            decided_at=now, decision_reason=_short(reason),
        )  # fmt: skip


def undo(*, request: QuotaRequest, by: User, now: datetime) -> QuotaRequest:
    """Takes back an approval before it comes into force: as if it had not been decided."""
    with transaction.atomic():
        request = _locked(request)
        _may(request, Verb.UNDO, by)
        if request.starts_at <= now:
            raise RefusedError(_("The change is in force already; it can be revoked, not undone."))
        try:
            policy.cancel(rows=list(request.rows.filter(cancelled_at=None)), by=by, now=now)
        except policy.QuotaConflict as conflict:
            raise RefusedError(str(conflict)) from conflict
        _refuse_second(request)
        request.rows.clear()
        return _move(
            request, Verb.UNDO, by=by, now=now, decided_by=None, decided_at=None,
            decision_reason="", granted_extra_gpus=None,
        )  # fmt: skip


def revoke(*, request: QuotaRequest, reason: str, by: User, now: datetime) -> QuotaRequest:
    """Ends a granted change before its time: the quota goes back to what it was, now."""
    if not reason.strip():
        raise RefusedError(_("Say why: quota is revoked only with a reason."))
    with transaction.atomic():
        request = _locked(request)
        _may(request, Verb.REVOKE, by)
        _refuse_overtaken(request, now=now)
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
        return _move(request, Verb.REVOKE, by=by, now=now, comment=_short(reason))


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
                moved += _along(request, now=now).state != before
            except RefusedError:  # another worker moved it this very moment
                continue
    return moved


def mark(request: QuotaRequest) -> int:
    """A number that changes whenever what would be decided changes; pages send it back."""
    latest = request.events.filter(verb__in=_CONTENT).order_by("-pk").first()
    return 0 if latest is None else latest.pk


def _along(request: QuotaRequest, *, now: datetime) -> QuotaRequest:
    if request.state == RequestState.SCHEDULED and request.starts_at <= now:
        # Re-validated when applied: somebody may have cancelled or replaced the row by hand.
        verb = Verb.SUPERSEDE if _overtaken(request, now=now) else Verb.ACTIVATE
        request = _move(request, verb, by=None, now=now)
        if verb is Verb.ACTIVATE and request.ends_at is None:
            _supersede_earlier(request, now=now)
    if request.state in {RequestState.ACTIVE, RequestState.EXPIRING} and request.ends_at:
        if request.ends_at <= now:
            return _move(request, Verb.EXPIRE, by=None, now=now)
        granted_time = request.ends_at - request.starts_at
        notice = next((days for days in NOTICES if days <= granted_time / 2), timedelta(0))
        if request.state == RequestState.ACTIVE and request.ends_at - notice <= now:
            return _move(request, Verb.NEAR_END, by=None, now=now)
    return request


def _supersede_earlier(request: QuotaRequest, *, now: datetime) -> None:
    earlier = QuotaRequest.objects.filter(
        project_id=request.project_id, pool_id=request.pool_id, state=RequestState.ACTIVE,
        ends_at=None,
    ).exclude(pk=request.pk)  # fmt: skip
    for other in earlier:
        _move(other, Verb.SUPERSEDE, by=None, now=now)


def _overtaken(request: QuotaRequest, *, now: datetime) -> bool:
    quota = policy_selectors.quota_of(project=request.project, pool=request.pool, at=now)
    if quota is None:  # the way back of a project that had no quota before is a withdrawn row
        return request.ends_at is None or now < request.ends_at
    return not request.rows.filter(pk=quota.pk).exists()


def _refuse_overtaken(request: QuotaRequest, *, now: datetime) -> None:
    if _overtaken(request, now=now):
        raise RefusedError(
            _("Another change of this quota is in force by now; change the quota itself instead.")
        )


def _base(*, project: Project, pool: Pool, starts_at: datetime, now: datetime) -> int:
    """The nominal quota that a change from `starts_at` on would replace."""
    return selectors.nominal_gpus(project=project, pool=pool, at=max(starts_at, now))


def _base_of(request: QuotaRequest, *, now: datetime) -> int:
    return _base(project=request.project, pool=request.pool, starts_at=request.starts_at, now=now)


def _check(request: QuotaRequest, *, now: datetime) -> None:
    """Refuses what no decision could put in force."""
    _short(request.justification)
    names = {"pool": request.pool.name, "base": request.base_nominal_gpus}
    if request.extra_gpus == 0:
        raise RefusedError(_("Ask for at least one GPU more or less."))
    if request.asked_gpus < 0:
        raise RefusedError(
            _("The project holds %(base)d GPUs of %(pool)s; no more can be given back.") % names
        )
    if request.extra_gpus > 0 and request.asked_gpus > request.pool.gpus:
        raise RefusedError(
            _(
                "This can never fit: %(pool)s has %(gpus)d GPUs, and with the %(base)d that the "
                "project holds this would make %(asked)d."
            )
            % {**names, "gpus": request.pool.gpus, "asked": request.asked_gpus}
        )
    if request.ends_at is not None and request.ends_at <= max(request.starts_at, now):
        raise RefusedError(_("The end must lie after the start, and in the future."))


def _short(text: str) -> str:
    """The text without blanks around it; refused when it is longer than a row keeps."""
    text = text.strip()
    if len(text) > MOST_CHARACTERS:
        raise RefusedError(
            _("This text has %(length)d characters; at most %(most)d are kept. Shorten it.")
            % {"length": len(text), "most": MOST_CHARACTERS}
        )
    return text


def _is_part(granted: int, asked: int) -> bool:
    return 0 < granted < asked or asked < granted < 0


def _unchanged(request: QuotaRequest, seen: int | None) -> None:
    if seen is not None and seen != mark(request):
        raise RefusedError(
            _("The request was changed after you opened it. Nothing was decided: look again.")
        )


def _same_base(request: QuotaRequest, *, now: datetime) -> None:
    if _base_of(request, now=now) == request.base_nominal_gpus:
        if request.plan is not None and not plans.is_stale(plan=request.plan, now=now):
            return
        sentence = _(
            "The policy has changed since this was simulated. Nothing was decided: simulate again."
        )
    else:
        sentence = _(
            "The quota of %(project)s on %(pool)s is no longer %(base)d GPUs, against which this "
            "was simulated. Nothing was decided: simulate again."
        ) % {
            "project": request.project.name,
            "pool": request.pool.name,
            "base": request.base_nominal_gpus,
        }
    raise RefusedError(sentence, simulate_again=True)


def _refuse_second(request: QuotaRequest) -> None:
    second = (
        QuotaRequest.objects.filter(
            project_id=request.project_id, pool_id=request.pool_id, state__in=PENDING
        )
        .exclude(pk=request.pk)
        .first()
    )
    if second is not None:
        raise RefusedError(
            _("Request %(number)d for this project and pool waits for a decision already.")
            % {"number": second.pk},
            other=second,
        )


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
        title=_("Request %(number)d") % {"number": request.pk},
    )
    return {"plan": plan, "base_nominal_gpus": _base_of(request, now=now)}


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


def _locked(request: QuotaRequest) -> QuotaRequest:
    return QuotaRequest.objects.select_for_update().get(pk=request.pk)


def _may(request: QuotaRequest, verb: Verb, by: User) -> None:
    """Refuses people who may never take this step (403), then steps that come too late or early."""
    if transitions.who(verb).isdisjoint(selectors.actors(by, request)):
        raise PermissionDenied(
            _("This step is not yours to take; nobody decides their own request.")
        )
    if transitions.step(verb, request.state) is None:
        raise RefusedError(
            _("This request is %(state)s; from there that step is not possible.")
            % {"state": request.get_state_display()}
        )


def _move(
    request: QuotaRequest,
    verb: Verb,
    *,
    by: User | None,
    now: datetime,
    comment: str = "",
    **fields: Any,
) -> QuotaRequest:
    """Takes a step by a conditional UPDATE: of two at one time exactly one succeeds."""
    step = transitions.step(verb, request.state)
    if step is None:
        raise ValueError(f"no step {verb} from {request.state}")
    try:
        with transaction.atomic():
            changed = QuotaRequest.objects.filter(pk=request.pk, state=step.origin).update(
                state=step.target, **fields
            )
    except IntegrityError as error:
        raise RefusedError(
            _("Another request for this project and pool was submitted at the same moment.")
        ) from error
    if changed != 1:
        raise RefusedError(_("Somebody else was faster: look at the request again."))
    _record(request, verb, origin=step.origin, target=step.target, by=by, now=now, comment=comment)
    request.refresh_from_db()
    return request


def _record(
    request: QuotaRequest,
    verb: Verb,
    *,
    origin: str,
    by: User | None,
    now: datetime,
    target: str = RequestState.DRAFT,
    comment: str = "",
) -> None:
    RequestEvent.objects.create(
        request=request,
        at=now,
        by=by,
        verb=verb,
        from_state=origin,
        to_state=target,
        comment=comment,
    )
