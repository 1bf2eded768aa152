"""Who may open what. Everybody must sign in (middleware); these narrow a view further.

A thing of another tenant does not exist for you (404); a thing of an office you do not hold is
refused (403). What a person may see inside a view comes from `portal.tenants.selectors`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase

from portal.accounts.models import User

Guard = Callable[[Callable[..., HttpResponseBase]], Callable[..., HttpResponseBase]]


def viewer(request: HttpRequest) -> User:
    """The signed-in person of a request."""
    user = request.user
    if not isinstance(user, User):
        raise PermissionDenied
    return user


def _only(allowed: Callable[[User], bool]) -> Guard:
    def decorate(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
        @wraps(view)
        def guarded(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
            if not allowed(viewer(request)):
                raise PermissionDenied
            return view(request, *args, **kwargs)

        return guarded

    return decorate


ops_only: Guard = _only(lambda user: user.is_ops)
overseers_only: Guard = _only(lambda user: user.sees_all_tenants)
