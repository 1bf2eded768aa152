"""What a person may see of plans: their state, and what came out, per viewer.

A lead sees the projects they may see by name; everybody else only as sums per lane over all
tenants. Ops and auditors see every project.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd
from django.db.models import Q, QuerySet

from planner.compare import Comparison, Effect
from planner.scenario import Change, diff, parse
from portal.accounts.models import User
from portal.plans.models import Plan
from portal.policy import guarantees
from portal.tenants.selectors import requestable_projects, visible_projects

WAIT, LOST, STAGED = "wait_p95_seconds", "lost_gpu_seconds_per_week", "staged_gb_per_week"
_HARM_FIRST = {"worse": 0, "unclear": 1, "better": 2}


def visible_plans(user: User) -> QuerySet[Plan]:
    """The plans this person may see: those of projects they may see, and their own of none.

    Who leaves a project leaves its plans behind, also those they made.
    """
    plans = Plan.objects.select_related("project__tenant", "created_by", "workload")
    plans = plans.defer("workload__jobs")
    if user.sees_all_tenants:
        return plans
    return plans.filter(
        Q(project__in=visible_projects(user)) | Q(project__isnull=True, created_by=user)
    )


def may_steer(user: User, plan: Plan) -> bool:
    """Whether this person may call a plan off or have it simulated again."""
    if user.is_auditor:
        return False
    return (
        user.is_ops
        or plan.created_by_id == user.pk
        or (plan.project is not None and plan.project in requestable_projects(user))
    )


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What a pool promises before and after, against what it has."""

    pool: str
    accelerator: str
    gpus: int
    before: int
    after: int
    domain: str
    gpus_left: int
    before_with_domain_down: int
    after_with_domain_down: int

    @property
    def over(self) -> int:
        """GPUs promised beyond what the pool has."""
        return max(0, self.after - self.gpus)

    @property
    def over_with_domain_down(self) -> int:
        """GPUs promised beyond what is left of this accelerator with the domain down."""
        return max(0, self.after_with_domain_down - self.gpus_left)


@dataclass(frozen=True)
class Outcome:
    """What came out of a plan, as one person may see it."""

    comparison: Comparison
    projects: frozenset[str] | None  # None: all
    guarantees: tuple[Guarantee, ...]

    @cached_property
    def waits(self) -> list[Effect]:
        """Who waits how much longer or shorter (p95 to the first start), worst first."""
        return self._harm_first(WAIT)

    @cached_property
    def losses(self) -> list[Effect]:
        """What evictions cost more or less: over all first, then whom it clearly moves."""
        rows = [row for row in self._harm_first(LOST) if row.verdict != "unclear"]
        return [row for row in [self.loss] if row] + [row for row in rows if row.project]

    @property
    def loss(self) -> Effect | None:
        """What evictions cost over all."""
        return self._total(LOST)

    @property
    def traffic(self) -> Effect | None:
        """What is carried between regions over all."""
        return self._total(STAGED)

    @property
    def clear(self) -> list[Effect]:
        """Waits that change clearly, worst first."""
        return [row for row in self.waits if row.verdict != "unclear"]

    @property
    def unclear(self) -> list[Effect]:
        """Waits whose interval crosses zero, or with too few jobs to tell."""
        return [row for row in self.waits if row.verdict == "unclear"]

    @property
    def others_worse(self) -> int:
        """How many groups of projects that the viewer may not see by name wait clearly longer."""
        return self._others("worse")

    @property
    def others_better(self) -> int:
        """How many groups of projects that the viewer may not see by name wait clearly less."""
        return self._others("better")

    def _others(self, verdict: str) -> int:
        return sum(
            effect.measure == WAIT
            and effect.verdict == verdict
            and effect.lane is not None
            and effect.project is not None
            and not self._may_see(effect)
            for effect in self.comparison.effects
        )

    @property
    def scale(self) -> float:
        """The change in seconds at either end of the drawn axis: one axis for all rows."""
        ends = [abs(end) for row in self.waits for end in (row.low, row.high) if end is not None]
        clear = [abs(end) for row in self.clear for end in (row.low, row.high) if end is not None]
        return max(clear or ends, default=0.0)

    def _harm_first(self, measure: str) -> list[Effect]:
        rows = [
            effect
            for effect in self.comparison.effects
            if effect.measure == measure and effect.lane is not None and self._may_see(effect)
        ]
        return sorted(rows, key=lambda row: (_HARM_FIRST[row.verdict], -row.difference))

    def _may_see(self, effect: Effect) -> bool:
        if effect.project is None:
            # Sums over all tenants stand in for the projects a viewer may not see.
            return self.projects is not None
        return self.projects is None or effect.project in self.projects

    def _total(self, measure: str) -> Effect | None:
        for effect in self.comparison.effects:
            if effect.measure == measure and effect.project is None and effect.lane is None:
                return effect
        return None


def outcome(*, plan: Plan, user: User) -> Outcome | None:
    """What came out of a plan, as this person may see it; None while there is nothing."""
    if plan.outcome is None:
        return None
    names = (
        None
        if user.sees_all_tenants
        else frozenset(visible_projects(user).values_list("name", flat=True))
    )
    return Outcome(
        comparison=Comparison.from_mapping(plan.outcome),
        projects=names,
        guarantees=_guarantees(plan.baseline, plan.proposal),
    )


def changes(plan: Plan) -> list[Change]:
    """What the proposal changes, by dimension."""
    return diff(parse(plan.baseline), parse(plan.proposal))


def _guarantees(baseline: Mapping[str, Any], proposal: Mapping[str, Any]) -> tuple[Guarantee, ...]:
    """The pools whose guarantees the proposal changes."""
    region_of = {row["name"]: row["region"] for row in baseline.get("domain", [])}
    pools = pd.DataFrame(
        [
            (
                row["name"],
                region_of[row["domain"]],
                row["domain"],
                row["accelerator"],
                row["nodes"] * row["gpus_per_node"],
            )
            for row in baseline.get("pool", [])
        ],
        columns=["pool", "region", "domain", "accelerator", "gpus"],
    )
    before, after = (
        guarantees.oversubscription(
            pools, {(row["project"], row["pool"]): row["nominal"] for row in side.get("quota", [])}
        )
        for side in (baseline, proposal)
    )
    return tuple(
        Guarantee(
            pool=new["pool"],
            accelerator=new["accelerator"],
            gpus=new["gpus"],
            before=old["guaranteed_gpus"],
            after=new["guaranteed_gpus"],
            domain=new["worst_domain_down"],
            gpus_left=new["gpus_with_domain_down"],
            before_with_domain_down=old["guaranteed_gpus_with_domain_down"],
            after_with_domain_down=new["guaranteed_gpus_with_domain_down"],
        )
        for old, new in zip(before.to_dict("records"), after.to_dict("records"), strict=True)
        if old["guaranteed_gpus"] != new["guaranteed_gpus"]
    )
