"""Simulated comparisons of two scenarios."""

from django.apps import AppConfig


class PlansConfig(AppConfig):
    """Simulated comparisons of two scenarios."""

    name = "portal.plans"
