"""Addresses of plans."""

from django.urls import path

from portal.plans import views

app_name = "plans"
urlpatterns = [
    path("", views.index, name="index"),
    path("<int:pk>/", views.detail, name="detail"),
    path("<int:pk>/outcome", views.outcome, name="outcome"),
    path("<int:pk>/download", views.download, name="download"),
    path("<int:pk>/cancel", views.cancel, name="cancel"),
    path("<int:pk>/again", views.again, name="again"),
]
