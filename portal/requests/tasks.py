"""What the clock does to requests."""

from celery import shared_task
from django.utils import timezone

from portal.requests import clock


@shared_task(name="requests.advance")
def advance() -> None:
    """Moves granted requests along to where the clock says they are."""
    clock.advance(now=timezone.now())
