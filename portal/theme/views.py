"""Choosing light or dark."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

YEAR = 365 * 24 * 3600


@require_POST
@login_not_required
def scheme(request: HttpRequest) -> HttpResponse:
    """Keeps the chosen colour scheme in a cookie; anything but light and dark means the system's.

    Works before sign-in and without JavaScript.
    """
    target = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(
        target, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    ):
        target = "/"
    response = redirect(target)
    chosen = request.POST.get("scheme", "")
    if chosen in {"light", "dark"}:
        response.set_cookie(
            "scheme",
            chosen,
            max_age=YEAR,
            samesite="Lax",
            httponly=True,
            secure=request.is_secure(),
        )
    else:
        response.delete_cookie("scheme", samesite="Lax")
    return response
