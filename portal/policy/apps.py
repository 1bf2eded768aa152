"""What is in force, and was at any instant."""

from django.apps import AppConfig


class PolicyConfig(AppConfig):
    """What is in force, and was at any instant."""

    name = "portal.policy"
