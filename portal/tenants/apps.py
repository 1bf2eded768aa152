"""Tenants, their projects and who belongs to them."""

from django.apps import AppConfig


class TenantsConfig(AppConfig):
    """Tenants, their projects and who belongs to them."""

    name = "portal.tenants"
