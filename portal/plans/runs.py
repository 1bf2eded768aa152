"""Who works on a plan: every step is a conditional UPDATE that must change exactly one row.

A claim is told from an earlier or later one by its instant (`started_at`): a worker that comes back
after its plan was given to another one, or cancelled, changes nothing and stops.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q

from planner import PLANNER_VERSION
from portal.plans.models import Plan, PlanState

# A worker writes after every replication; longer silence means that it died.
SILENCE = timedelta(minutes=2)


def claim(*, plan_id: int, now: datetime) -> Plan | None:
    """Takes a queued plan to work on; None when somebody else has it or it is not queued."""
    taken = Plan.objects.filter(pk=plan_id, state=PlanState.QUEUED).update(
        state=PlanState.RUNNING,
        started_at=now,
        heartbeat_at=now,
        done_replications=0,
        planner_version=PLANNER_VERSION,
        error="",
    )
    if taken != 1:
        return None
    return Plan.objects.select_related("workload").get(pk=plan_id)


def heartbeat(*, plan: Plan, done: int, now: datetime) -> bool:
    """Says that a worker is alive and how far it is; False when the plan is no longer its own."""
    return _mine(plan, done_replications=done, heartbeat_at=now)


def finish(*, plan: Plan, outcome: dict[str, Any], now: datetime) -> bool:
    """Records what came out; False when the plan is no longer this worker's."""
    return _mine(plan, state=PlanState.DONE, outcome=outcome, finished_at=now, heartbeat_at=now)


def fail(*, plan: Plan, error: str, now: datetime) -> bool:
    """Records why nothing came out; False when the plan is no longer this worker's."""
    return _mine(plan, state=PlanState.FAILED, error=error, finished_at=now, heartbeat_at=now)


def release_abandoned(*, now: datetime) -> list[int]:
    """Queues again the plans whose worker fell silent or that never reached one: their ids."""
    abandoned = Plan.objects.filter(
        Q(state=PlanState.RUNNING, heartbeat_at__lt=now - SILENCE)
        | Q(state=PlanState.QUEUED, heartbeat_at__lt=now - SILENCE)
        | Q(state=PlanState.QUEUED, heartbeat_at=None, created_at__lt=now - SILENCE)
    )
    return [plan.pk for plan in abandoned.only("state", "heartbeat_at") if _release(plan, now)]


def _release(plan: Plan, now: datetime) -> bool:
    released = Plan.objects.filter(
        pk=plan.pk, state=plan.state, heartbeat_at=plan.heartbeat_at
    ).update(state=PlanState.QUEUED, done_replications=0, heartbeat_at=now)
    return released == 1


def _mine(plan: Plan, **changes: Any) -> bool:
    changed = Plan.objects.filter(
        pk=plan.pk, state=PlanState.RUNNING, started_at=plan.started_at
    ).update(**changes)
    return changed == 1
