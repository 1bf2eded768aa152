"""The demo world: seeding, its exporter and its launcher."""

from django.apps import AppConfig


class DemoConfig(AppConfig):
    """The demo world: seeding, its exporter and its launcher."""

    name = "portal.demo"
