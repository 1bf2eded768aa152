"""Collects every region, one task each: a slow region holds up no other."""

import logging

from celery import shared_task
from django.utils import timezone

from collectors import asking, ingest
from portal.fleet.models import Region

logger = logging.getLogger(__name__)


@shared_task(name="collectors.collect_all")
def collect_all() -> None:
    """Starts a collection of each region that has a Prometheus."""
    for name in Region.objects.values_list("name", flat=True):
        if asking.has_source(name):
            collect_region.apply_async((name,), expires=270)


@shared_task(name="collectors.collect_region")
def collect_region(name: str) -> None:
    """Collects one region from where it stopped."""
    region, catalogue = Region.objects.get(name=name), asking.site_catalogue()
    with asking.source_of(name) as source:
        try:
            ingest.collect(
                region=region, catalogue=catalogue, source=source, asked_by="schedule",
                now=timezone.now(),
            )  # fmt: skip
        except ingest.AlreadyCollectingError as busy:
            logger.info("%s", busy)


@shared_task(name="collectors.prune")
def prune() -> None:
    """Forgets how the collections of long ago went."""
    logger.info("%d old collections forgotten", ingest.prune(now=timezone.now()))
