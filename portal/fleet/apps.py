"""What hardware there is meant to be."""

from django.apps import AppConfig


class FleetConfig(AppConfig):
    """What hardware there is meant to be."""

    name = "portal.fleet"
