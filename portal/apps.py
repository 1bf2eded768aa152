"""The portal as a Django app: loads the Celery app so that every task binds to it."""

from django.apps import AppConfig


class PortalConfig(AppConfig):
    """Holds what belongs to no slice: system checks and the Celery app."""

    name = "portal"

    def ready(self) -> None:
        """Loads Celery (else `shared_task` binds to Celery's default app) and the checks."""
        from portal import celery, checks  # noqa: F401
