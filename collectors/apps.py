"""The collectors as a Django app: only for its command and tasks; it has no models."""

from django.apps import AppConfig


class CollectorsConfig(AppConfig):
    """Prometheus to rollups."""

    name = "collectors"
