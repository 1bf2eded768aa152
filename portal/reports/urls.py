"""Addresses of the weekly report."""

from django.urls import path

from portal.reports import views

app_name = "reports"
urlpatterns = [
    path("", views.latest, name="latest"),
    path("definitions.csv", views.definitions_csv, name="definitions_csv"),
    path("<str:name>.csv", views.week_csv, name="week_csv"),
    path("<str:name>/", views.week, name="week"),
]
