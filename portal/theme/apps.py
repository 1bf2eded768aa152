"""The look: stylesheet, scripts, units and dates."""

from django.apps import AppConfig


class ThemeConfig(AppConfig):
    """The look: stylesheet, scripts, units and dates."""

    name = "portal.theme"
