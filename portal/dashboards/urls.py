"""Addresses of the dashboards."""

from django.urls import path

from portal.dashboards import views

app_name = "dashboards"
urlpatterns = [
    path("", views.overview, name="overview"),
    path("regions/", views.regions, name="regions"),
    path("regions/<slug:name>/", views.region, name="region"),
    path("regions/<slug:name>/hours.csv", views.region_csv, name="region_csv"),
    path("pools/<slug:name>/", views.pool, name="pool"),
    path("pools/<slug:name>/hours.csv", views.pool_csv, name="pool_csv"),
    path("projects/", views.projects, name="projects"),
    path("projects/<slug:name>/", views.project, name="project"),
    path("projects/<slug:name>/hours.csv", views.project_csv, name="project_csv"),
    path("collection/", views.collection, name="collection"),
]
