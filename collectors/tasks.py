"""Collects every region, one task each: a slow region holds up no other."""

import logging
from datetime import datetime, timedelta

from celery import Task, shared_task
from django.db import InterfaceError, OperationalError
from django.utils import timezone

from collectors import asking, claims, ingest, retention
from collectors.catalogue import CatalogueError
from portal.fleet.models import Region

logger = logging.getLogger(__name__)

# The next collection is due then, and asks for what this one would have asked for.
OVERDUE_AFTER = timedelta(seconds=270)


# Acknowledged when it begins: what a collection that died owed, the next one makes up for. Handed
# out again, one that is too large for the machine would end one worker after the other.
@shared_task(name="collectors.collect_all", acks_late=False)
def collect_all() -> None:
    """Starts a collection of each region that has a Prometheus."""
    due_at = timezone.now().isoformat()
    for name in Region.objects.values_list("name", flat=True):
        if asking.has_source(name):
            collect_region.delay(name, due_at)


@shared_task(
    name="collectors.collect_region",
    bind=True,
    acks_late=False,
    time_limit=900,
    soft_time_limit=840,
    # The database went away: what was not stored in whole was not stored at all.
    autoretry_for=(OperationalError, InterfaceError),
    max_retries=3,
    retry_backoff=5,
    retry_jitter=False,
)
def collect_region(self: "Task[..., None]", name: str, due_at: str | None = None) -> None:
    """Collects one region from where it stopped; not when it is long overdue, or under way."""
    region, now = Region.objects.get(name=name), timezone.now()
    if due_at is not None and now - datetime.fromisoformat(due_at) > OVERDUE_AFTER:
        claims.count_overdue(region)
        logger.warning("The collection of %s that was due at %s is passed over", name, due_at)
        return
    try:
        catalogue = asking.site_catalogue()
    except CatalogueError as error:
        logger.error("%s", error)
        ingest.refused(
            region=region, kind="bad-catalogue", error=str(error), asked_by="schedule", now=now
        )
        return
    with asking.source_of(name, tells_problems=True) as source:
        try:
            ingest.collect(
                region=region, catalogue=catalogue, source=source, asked_by="schedule", now=now,
                # The same one when it is tried again: its claim is still its own.
                owner=self.request.id,
            )  # fmt: skip
        except ingest.AlreadyCollectingError as busy:
            logger.info("%s", busy)


@shared_task(name="collectors.prune")
def prune() -> None:
    """Forgets how the collections of long ago went, and rollups that are kept no longer."""
    now = timezone.now()
    logger.info("%d old collections forgotten", ingest.prune(now=now))
    logger.info("Old rollups deleted: %s", retention.prune(now=now))
