"""Health for the machinery round the site: is this process up, and can it work?"""

from __future__ import annotations

import logging

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from kombu import Connection
from kombu.exceptions import OperationalError

BROKER_SECONDS = 2

logger = logging.getLogger(__name__)


@login_not_required
@never_cache
@require_safe
def healthz(_request: HttpRequest) -> JsonResponse:
    """The process answers. Restart it when this fails."""
    return JsonResponse({"status": "up"})


@login_not_required
@never_cache
@require_safe
def readyz(_request: HttpRequest) -> JsonResponse:
    """The database and the broker answer too. Send no visitors (503) while one does not."""
    found = {"database": database_answers(), "broker": broker_answers()}
    ready = all(found.values())
    body = {name: "reachable" if answers else "unreachable" for name, answers in found.items()}
    return JsonResponse(
        {"status": "ready" if ready else "not ready", **body}, status=200 if ready else 503
    )


def database_answers() -> bool:
    """Whether the database answers a query."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        logger.warning("The database does not answer", exc_info=True)
        return False
    return True


def broker_answers() -> bool:
    """Whether the broker of the tasks accepts a connection."""
    try:
        with Connection(settings.CELERY_BROKER_URL, connect_timeout=BROKER_SECONDS) as broker:
            broker.ensure_connection(max_retries=1, timeout=BROKER_SECONDS, errback=None)
    except (OperationalError, OSError):
        logger.warning("The broker does not answer", exc_info=True)
        return False
    return True
