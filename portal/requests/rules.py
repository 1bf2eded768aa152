"""Why a request is refused: values that no decision could put in force, a base that has moved."""

from __future__ import annotations

from datetime import datetime

from django.utils.translation import gettext as _

from portal.fleet.models import Pool
from portal.plans import services as plans
from portal.policy import selectors as policy
from portal.requests import selectors
from portal.requests.models import PENDING, QuotaRequest, Verb
from portal.requests.steps import RefusedError
from portal.tenants.models import Project

MOST_CHARACTERS = 2000  # of a justification, a reason, a comment
# Steps after which an opened page no longer shows what would be decided.
_CONTENT = (Verb.SUBMIT, Verb.EDIT, Verb.SIMULATE, Verb.UNDO)


def mark(request: QuotaRequest) -> int:
    """A number that changes whenever what would be decided changes; pages send it back."""
    latest = request.events.filter(verb__in=_CONTENT).order_by("-pk").first()
    return 0 if latest is None else latest.pk


def base(*, project: Project, pool: Pool, starts_at: datetime, now: datetime) -> int:
    """The nominal quota that a change from `starts_at` on would replace."""
    return selectors.nominal_gpus(project=project, pool=pool, at=max(starts_at, now))


def base_of(request: QuotaRequest, *, now: datetime) -> int:
    """The nominal quota that a request would replace, as of now."""
    return base(project=request.project, pool=request.pool, starts_at=request.starts_at, now=now)


def short(text: str) -> str:
    """The text without blanks around it; refused when it is longer than a row keeps."""
    text = text.strip()
    if len(text) > MOST_CHARACTERS:
        raise RefusedError(
            _("This text has %(length)d characters; at most %(most)d are kept. Shorten it.")
            % {"length": len(text), "most": MOST_CHARACTERS}
        )
    return text


def check(request: QuotaRequest, *, now: datetime) -> None:
    """Refuses what no decision could put in force."""
    if not short(request.justification):
        raise RefusedError(_("Say why you ask: whoever decides reads it."))
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


def is_part(granted: int, asked: int) -> bool:
    """Whether a number of GPUs is a part of what was asked: neither nothing nor all."""
    return 0 < granted < asked or asked < granted < 0


def unchanged(request: QuotaRequest, seen: int | None) -> None:
    """Refuses a decision made on a page that no longer shows what would be decided."""
    if seen is not None and seen != mark(request):
        raise RefusedError(
            _("The request was changed after you opened it. Nothing was decided: look again.")
        )


def same_base(request: QuotaRequest, *, now: datetime) -> None:
    """Refuses a decision when what was simulated is not what would be changed."""
    if base_of(request, now=now) == request.base_nominal_gpus:
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


def refuse_second(request: QuotaRequest) -> None:
    """Refuses a second pending request for one project and pool, and names the first."""
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


def overtaken(request: QuotaRequest, *, now: datetime) -> bool:
    """Whether another row than one of the request's own is in force."""
    quota = policy.quota_of(project=request.project, pool=request.pool, at=now)
    if quota is None:  # the way back of a project that had no quota before is a withdrawn row
        return request.ends_at is None or now < request.ends_at
    return not request.rows.filter(pk=quota.pk).exists()


def refuse_overtaken(request: QuotaRequest, *, now: datetime) -> None:
    """Refuses to take back what another change has replaced."""
    if overtaken(request, now=now):
        raise RefusedError(
            _("Another change of this quota is in force by now; change the quota itself instead.")
        )
