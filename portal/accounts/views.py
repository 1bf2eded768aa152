"""What of allauth's pages is closed here."""

from django.http import Http404, HttpRequest, HttpResponse


def email(_request: HttpRequest) -> HttpResponse:
    """Addresses are given by an administrator: nobody takes another one, or somebody else's."""
    raise Http404
