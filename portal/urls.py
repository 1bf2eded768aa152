"""Every address of the site."""

from allauth.account.decorators import secure_admin_login
from django.contrib import admin
from django.contrib.auth.decorators import login_not_required
from django.urls import include, path
from django.views.i18n import set_language

from portal import health
from portal import metrics as own_metrics
from portal.accounts import views as accounts

# One door for everybody: the administration's own would let passwords be guessed without limit.
admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]

urlpatterns = [
    path("", include("portal.dashboards.urls")),
    path("theme/", include("portal.theme.urls")),
    path("i18n/setlang/", login_not_required(set_language), name="set_language"),
    path("requests/", include("portal.requests.urls")),
    path("plans/", include("portal.plans.urls")),
    path("weeks/", include("portal.reports.urls")),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", own_metrics.metrics, name="metrics"),
    path("accounts/email/", accounts.email, name="account_email"),  # before allauth's own
    path("accounts/", include("allauth.account.urls")),
    path("admin/", admin.site.urls),
]
