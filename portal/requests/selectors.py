"""What a person may see of requests, and what a request would meet if it were granted now."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import pandas as pd
from django.db.models import Case, Q, QuerySet, Value, When

from portal.accounts.models import User
from portal.fleet.models import Pool, Purpose
from portal.plans import services as plans
from portal.plans.selectors import Guarantee
from portal.policy import selectors as policy
from portal.policy.models import Quota
from portal.requests.models import PENDING, QuotaRequest, RequestEvent, RequestState
from portal.requests.transitions import Actor
from portal.telemetry import selectors as telemetry
from portal.tenants.models import Project
from portal.tenants.selectors import requestable_projects, visible_projects


def visible_requests(user: User) -> QuerySet[QuotaRequest]:
    """The requests this person may read; a draft is seen only by those who may submit it."""
    return (
        QuotaRequest.objects.select_related(
            "project__tenant", "pool__domain__region", "requested_by", "decided_by", "plan"
        )
        .filter(project__in=visible_projects(user))
        .exclude(Q(state=RequestState.DRAFT) & ~Q(project__in=requestable_projects(user)))
    )


def pending(user: User) -> QuerySet[QuotaRequest]:
    """The visible requests that wait for a decision, oldest first."""
    return visible_requests(user).filter(state__in=PENDING).order_by("submitted_at", "pk")


def others(user: User) -> QuerySet[QuotaRequest]:
    """The visible requests that do not wait for a decision: drafts first, then newest first."""
    draft_first = Case(When(state=RequestState.DRAFT, then=Value(0)), default=Value(1))
    return visible_requests(user).exclude(state__in=PENDING).order_by(draft_first, "-pk")


def pending_count(user: User) -> int:
    """How many requests this person sees waiting for a decision."""
    return pending(user).count()


def actors(user: User, request: QuotaRequest) -> frozenset[Actor]:
    """Who this person is to a request. Ops who may ask for the project do not decide for it."""
    if requestable_projects(user).filter(pk=request.project_id).exists():
        return frozenset({Actor.ASKER})
    if user.is_ops and user.pk != request.requested_by_id:
        return frozenset({Actor.OPS})
    return frozenset()


def requestable_pools(projects: QuerySet[Project], *, now: datetime) -> QuerySet[Pool]:
    """The pools a request may name: those with quota for the projects, and all for training."""
    held = pools_held(projects, now=now)
    return Pool.objects.filter(Q(purpose=Purpose.TRAINING) | Q(pk__in=held))


def pools_held(projects: QuerySet[Project], *, now: datetime) -> set[int]:
    """The keys of the pools in which any of these projects holds quota."""
    rows = Quota.objects.at(now).filter(project__in=projects, nominal_gpus__gt=0)
    return set(rows.values_list("pool_id", flat=True))


def nominal_gpus(*, project: Project, pool: Pool, at: datetime) -> int:
    """The nominal quota in force at an instant; without a rule the project is entitled to none."""
    quota = policy.quota_of(project=project, pool=pool, at=at)
    return 0 if quota is None else quota.nominal_gpus


def granted_before(request: QuotaRequest) -> int:
    """How many earlier requests of the project were approved."""
    return QuotaRequest.objects.filter(
        project_id=request.project_id, granted_extra_gpus__isnull=False, pk__lt=request.pk
    ).count()


def trail(request: QuotaRequest) -> list[RequestEvent]:
    """Every step of a request, oldest first."""
    return list(request.events.select_related("by"))


class Fits(StrEnum):
    """Whether more GPUs could be used at once."""

    NOW = "now"
    WAIT = "wait"
    NEVER = "never"
    LESS = "less"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Fit:
    """What stands in a pool right now beside what is asked for. Never a reservation."""

    verdict: Fits
    nominal_gpus: int
    asked_gpus: int
    pool_gpus: int
    used_gpus: int | None
    free_gpus: int | None
    seen_at: datetime | None


def fit(*, project: Project, pool: Pool, extra_gpus: int, now: datetime) -> Fit:
    """Says whether `extra_gpus` more would find free GPUs in the pool now.

    Without a sample of the pool the answer is unknown; a pool that somebody uses but this project
    does not counts as 0 in use for the project.
    """
    nominal = nominal_gpus(project=project, pool=pool, at=now)
    frame = telemetry.latest(
        signal="quota_used_gpus",
        region=pool.domain.region.name,
        by=("pool", "project"),
        now=now,
    )
    seen = frame[(frame["pool"] == pool.name) & frame["value"].notna()] if len(frame) else frame
    used = free = seen_at = None
    if len(seen):
        used = math.ceil(seen.loc[seen["project"] == project.name, "value"].sum())
        free = max(0, pool.gpus - math.ceil(seen["value"].sum()))
        seen_at = pd.Timestamp(seen["at"].min()).to_pydatetime()
    if nominal + extra_gpus > pool.gpus:
        verdict = Fits.NEVER
    elif extra_gpus <= 0:
        verdict = Fits.LESS
    elif free is None:
        verdict = Fits.UNKNOWN
    else:
        verdict = Fits.NOW if free >= extra_gpus else Fits.WAIT
    return Fit(verdict, nominal, nominal + extra_gpus, pool.gpus, used, free, seen_at)


@dataclass(frozen=True, slots=True)
class Board:
    """What lies before whoever decides: current against requested, and whether it still holds."""

    nominal_gpus: int
    then_gpus: int
    borrowing_limit_gpus: int | None
    limit_gpus: int
    limit_then_gpus: int
    used_gpus: int | None
    seen_at: datetime | None
    starts_at: datetime
    at_once: bool
    base_moved: bool
    stale: bool
    guarantee: Guarantee | None

    @property
    def must_simulate(self) -> bool:
        """What was simulated is not what would be changed."""
        return self.base_moved or self.stale


def board(request: QuotaRequest, *, now: datetime) -> Board:
    """Sets what is in force beside what a request asks for (or was granted).

    A pending request is compared with the quota in force at its start; a decided one with the quota
    it was decided against.
    """
    starts_at = max(request.starts_at, now) if request.is_pending else request.starts_at
    pool, names = request.pool, (request.project.name, request.pool.name)
    quota = policy.quota_of(project=request.project, pool=pool, at=starts_at)
    in_force = 0 if quota is None else quota.nominal_gpus
    open_now = request.is_pending or request.state == RequestState.DRAFT
    nominal = in_force if open_now else request.base_nominal_gpus
    extra = request.extra_gpus if request.granted_extra_gpus is None else request.granted_extra_gpus
    borrowing = None if quota is None else quota.borrowing_limit_gpus
    seen = fit(project=request.project, pool=pool, extra_gpus=extra, now=now)
    guarantee = None
    if open_now:
        guarantee = _guarantee(pool, at=starts_at, override={names: nominal + extra})
    return Board(
        nominal_gpus=nominal,
        then_gpus=nominal + extra,
        borrowing_limit_gpus=borrowing,
        limit_gpus=_limit(nominal, borrowing, pool),
        limit_then_gpus=_limit(nominal + extra, borrowing, pool),
        used_gpus=seen.used_gpus,
        seen_at=seen.seen_at,
        starts_at=starts_at,
        at_once=request.starts_at <= now,
        base_moved=request.is_pending and in_force != request.base_nominal_gpus,
        stale=(
            request.is_pending
            and request.plan is not None
            and plans.is_stale(plan=request.plan, now=now)
        ),
        guarantee=guarantee,
    )


def _guarantee(pool: Pool, *, at: datetime, override: dict[tuple[str, str], int]) -> Guarantee:
    """What the pool promises before and after, also with one failure domain down."""
    before, after = (
        frame[frame["pool"] == pool.name].to_dict("records")[0]
        for frame in (
            policy.oversubscription(at=at),
            policy.oversubscription(at=at, override=override),
        )
    )
    return Guarantee(
        pool=pool.name,
        accelerator=pool.accelerator,
        gpus=pool.gpus,
        before=int(before["guaranteed_gpus"]),
        after=int(after["guaranteed_gpus"]),
        domain=str(after["worst_domain_down"]),
        gpus_left=int(after["gpus_with_domain_down"]),
        before_with_domain_down=int(before["guaranteed_gpus_with_domain_down"]),
        after_with_domain_down=int(after["guaranteed_gpus_with_domain_down"]),
    )


def _limit(nominal: int, borrowing: int | None, pool: Pool) -> int:
    return pool.gpus if borrowing is None else min(pool.gpus, nominal + borrowing)
