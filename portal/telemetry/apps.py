"""What was observed."""

from django.apps import AppConfig


class TelemetryConfig(AppConfig):
    """What was observed."""

    name = "portal.telemetry"
