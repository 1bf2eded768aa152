"""Every address of the site."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    # path("", include("portal.dashboards.urls")),
    # path("requests/", include("portal.requests.urls")),
    # path("plans/", include("portal.plans.urls")),
    # path("weeks/", include("portal.reports.urls")),
    path("accounts/", include("allauth.account.urls")),
    path("admin/", admin.site.urls),
]
