"""People and how they sign in."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """People and how they sign in."""

    name = "portal.accounts"
