"""The conversation about a change of quota."""

from django.apps import AppConfig


class RequestsConfig(AppConfig):
    """The conversation about a change of quota."""

    name = "portal.requests"
