"""The demo's own task."""

from celery import shared_task
from django.utils import timezone

from portal.demo import services


@shared_task(name="demo.tick")
def tick() -> None:
    """Tells the demo's story a minute further."""
    services.tick(now=timezone.now())
