"""Making plans: freeze what is in force and what is proposed, and have the difference simulated."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from planner import PLANNER_VERSION
from planner.scenario import Scenario, content_hash, to_mapping
from portal.accounts.models import User
from portal.fleet.models import Pool
from portal.plans import scenarios, tasks
from portal.plans.models import Plan, PlanState, Workload
from portal.policy import selectors as policy
from portal.tenants.models import Project

REPLICATIONS = 20
DAYS = 7


def queue_quota_change(
    *,
    project: Project,
    pool: Pool,
    extra_gpus: int,
    starts_at: datetime,
    by: User,
    now: datetime,
    title: str = "",
) -> Plan:
    """Has the effect of more or fewer GPUs for a project in a pool simulated.

    The baseline is the policy that will be in force when the change starts (now, if that is past),
    the work the last 28 whole days of job records. A plan with the same scenarios that is waiting,
    running or done is given back instead of a second one.
    """
    policy_at = starts_at if starts_at > now else None
    held = policy.quota_of(project=project, pool=pool, at=policy_at or now)
    nominal_gpus = max(0, (held.nominal_gpus if held else 0) + extra_gpus)
    observed = scenarios.observed_work(until=now)
    baseline = scenarios.in_force(
        at=policy_at or now, start=observed.observed_from, horizon_seconds=_seconds(observed)
    )
    proposal = scenarios.with_quota(
        baseline,
        project=project.name,
        pool=pool.name,
        nominal_gpus=nominal_gpus,
        name=f"{project.name} on {pool.name}: {nominal_gpus} GPUs",
    )
    return queue(
        baseline=baseline,
        proposal=proposal,
        observed=observed,
        project=project,
        policy_at=policy_at,
        by=by,
        # No words: the title is kept, and is read in either language.
        title=title or f"{project.name} · {pool.name} · {extra_gpus:+d} GPU",
    )


@transaction.atomic
def queue(
    *,
    baseline: Scenario,
    proposal: Scenario,
    observed: scenarios.ObservedWork,
    project: Project | None,
    policy_at: datetime | None,
    by: User,
    title: str,
) -> Plan:
    """Freezes two scenarios (without jobs) and the work, and has them compared in a worker."""
    workload = _freeze(observed)
    same = {
        "workload": workload,
        "baseline_hash": content_hash(baseline),
        "proposal_hash": content_hash(proposal),
        "project": project,
        "policy_at": policy_at,
        "replications": REPLICATIONS,
        "days": DAYS,
        "planner_version": PLANNER_VERSION,
    }
    useful = (PlanState.QUEUED, PlanState.RUNNING, PlanState.DONE)
    found = Plan.objects.filter(**same, state__in=useful).first()
    if found is not None:
        return found
    plan = Plan.objects.create(
        **same,
        title=title[:200],
        created_by=by,
        baseline=to_mapping(baseline),
        proposal=to_mapping(proposal),
    )
    # Without a broker the plan stays queued, and `plans.requeue` hands it out again.
    transaction.on_commit(lambda: tasks.run.delay(plan.pk), robust=True)
    return plan


def again(*, plan: Plan, by: User, now: datetime) -> Plan:
    """Has the same change of quota simulated against what is in force now.

    Gives the plan itself back when nothing has changed and it has not failed. Raises ValueError for
    a plan that does not change the quota of its project in one pool.
    """
    before, after = (
        {(row["project"], row["pool"]): row["nominal"] for row in side.get("quota", [])}
        for side in (plan.baseline, plan.proposal)
    )
    moved = [key for key in after if after[key] != before.get(key, 0)]
    if plan.project is None or len(moved) != 1 or moved[0][0] != plan.project.name:
        raise ValueError("only a plan of one change of quota can be made again")
    return queue_quota_change(
        project=plan.project,
        pool=Pool.objects.get(name=moved[0][1]),
        extra_gpus=after[moved[0]] - before.get(moved[0], 0),
        starts_at=plan.policy_at or now,
        by=by,
        now=now,
        title=plan.title,
    )


def is_stale(*, plan: Plan, now: datetime) -> bool:
    """Whether the policy or the fleet that the plan was compared with has changed since.

    Not stale: what the plan proposes has come into force itself.
    """
    at = max(now, plan.policy_at or now)
    current = scenarios.in_force(
        at=at,
        start=plan.workload.observed_from,
        horizon_seconds=plan.baseline.get("horizon_seconds"),
    )
    proposed = scenarios.named(current, plan.proposal["name"])
    return (
        content_hash(current) != plan.baseline_hash and content_hash(proposed) != plan.proposal_hash
    )


def cancel(*, plan: Plan, now: datetime) -> bool:
    """Calls a waiting or running plan off; False when it had ended already."""
    waiting = (PlanState.QUEUED, PlanState.RUNNING)
    changed = Plan.objects.filter(pk=plan.pk, state__in=waiting).update(
        state=PlanState.CANCELLED, finished_at=now
    )
    return changed == 1


def _seconds(observed: scenarios.ObservedWork) -> int:
    return int((observed.observed_to - observed.observed_from).total_seconds())


def _freeze(observed: scenarios.ObservedWork) -> Workload:
    jobs = scenarios.freeze_jobs(observed.jobs, start=observed.observed_from)
    workload, _made = Workload.objects.get_or_create(
        content_hash=scenarios.hash_of(jobs, observed),
        defaults={
            "jobs": jobs,
            "job_count": len(observed.jobs),
            "observed_from": observed.observed_from,
            "observed_to": observed.observed_to,
            "left_out": observed.left_out,
        },
    )
    return workload
