"""The collectors as a Django app: for its commands, tasks and checks; it has no models."""

from django.apps import AppConfig


class CollectorsConfig(AppConfig):
    """Prometheus to rollups."""

    name = "collectors"

    def ready(self) -> None:
        """Registers what `manage.py check` looks at."""
        from collectors import checks  # noqa: F401 - importing it is registering
