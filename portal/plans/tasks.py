"""Simulating in a worker."""

from celery import shared_task

from portal.plans import simulate


@shared_task(name="plans.run")
def run(plan_id: int) -> None:
    """Runs one plan."""
    simulate.run(plan_id=plan_id)
