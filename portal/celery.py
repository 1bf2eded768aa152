"""The Celery app: one queue per kind of work, and the schedule in code."""

import os

from celery import Celery, signals
from celery.schedules import crontab
from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

COLLECT, SIMULATE, REPORT = "collect", "simulate", "report"

app = Celery("sekisho")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["collectors", "portal.plans", "portal.requests", "portal.demo"])
app.conf.task_default_queue = REPORT
app.conf.task_routes = {
    "collectors.*": {"queue": COLLECT},
    "plans.*": {"queue": SIMULATE},
    "requests.*": {"queue": REPORT},
    "demo.*": {"queue": REPORT},
}
app.conf.beat_schedule = {
    "collect every region": {
        "task": "collectors.collect_all",
        # A minute after each step: at the step itself it is not settled, and the run would ask
        # for nothing newer than the run before.
        "schedule": crontab(minute="1-59/5"),
        "options": {"expires": 270},
    },
    "forget how old collections went": {
        "task": "collectors.prune",
        "schedule": crontab(hour="18", minute="20"),  # UTC: 03:20 in Japan
        "options": {"expires": 3600},
    },
    "hand out abandoned plans again": {
        "task": "plans.requeue",
        "schedule": crontab(minute="*"),
        "options": {"expires": 50},
    },
    "move requests along": {
        "task": "requests.advance",
        "schedule": crontab(minute="*"),
        "options": {"expires": 50},
    },
}
if settings.DEMO:
    app.conf.beat_schedule["tell the demo's story"] = {
        "task": "demo.tick",
        "schedule": crontab(minute="*"),
        "options": {"expires": 50},
    }


@signals.setup_logging.connect
def _keep_django_logging(**_kwargs: object) -> None:
    """Celery would otherwise replace the logging that settings.py describes."""
