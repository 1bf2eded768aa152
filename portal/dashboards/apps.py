"""Dashboards: overview, regions, pools, projects, collection."""

from django.apps import AppConfig


class DashboardsConfig(AppConfig):
    """Dashboards: overview, regions, pools, projects, collection."""

    name = "portal.dashboards"
