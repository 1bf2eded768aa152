"""Runs a plan: both scenarios on the same resampled days, again and again, with progress."""

from __future__ import annotations

import logging

from celery.exceptions import SoftTimeLimitExceeded
from django.utils import timezone

from planner.compare import replicate, summarise
from planner.scenario import ScenarioError
from portal.plans import runs, scenarios
from portal.plans.models import Plan

log = logging.getLogger(__name__)

WARMUP_DAYS = 1


def run(*, plan_id: int) -> None:
    """Simulates a queued plan to its end, unless another worker has it or it is cancelled."""
    plan = runs.claim(plan_id=plan_id, now=timezone.now())
    if plan is None:
        return
    try:
        _simulate(plan)
    except ScenarioError as error:
        runs.fail(plan=plan, error=str(error), now=timezone.now())
    except SoftTimeLimitExceeded:
        runs.fail(plan=plan, error="SoftTimeLimitExceeded", now=timezone.now())
    except Exception as error:
        # The person who waits is told; the traceback goes to the log by way of Celery.
        runs.fail(plan=plan, error=f"{type(error).__name__}: {error}", now=timezone.now())
        raise


def _simulate(plan: Plan) -> None:
    jobs = bytes(plan.workload.jobs)
    baseline = scenarios.thaw(plan.baseline, jobs)
    proposal = scenarios.thaw(plan.proposal, jobs)
    results = []
    for index in range(plan.replications):
        results.append(
            replicate(
                baseline,
                proposal,
                index=index,
                days=plan.days,
                warmup_days=WARMUP_DAYS,
                seed=plan.seed,
            )
        )
        if not runs.heartbeat(plan=plan, done=index + 1, now=timezone.now()):
            log.info("Plan %s was cancelled or given to another worker", plan.pk)
            return
    outcome = summarise(results).to_mapping()
    runs.finish(plan=plan, outcome=outcome, now=timezone.now())
