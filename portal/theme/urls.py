"""Addresses of the look: the scheme switch."""

from django.urls import path

from portal.theme import views

app_name = "theme"
urlpatterns = [path("scheme/", views.scheme, name="scheme")]
