"""Simulating in a worker. Names and ids only: what to do stands in the plan's row."""

from celery import shared_task
from django.utils import timezone

from portal.plans import runs, simulate


@shared_task(name="plans.run")
def run(plan_id: int) -> None:
    """Runs one plan."""
    simulate.run(plan_id=plan_id)


@shared_task(name="plans.requeue")
def requeue() -> None:
    """Hands out again the plans whose worker died."""
    for plan_id in runs.release_abandoned(now=timezone.now()):
        run.delay(plan_id)
