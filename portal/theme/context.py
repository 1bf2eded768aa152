"""What every page needs to draw its frame."""

from django.conf import settings
from django.http import HttpRequest


def page(request: HttpRequest) -> dict[str, object]:
    """The colour scheme (`light`, `dark`, empty: the system's), and whether anything is live."""
    scheme = request.COOKIES.get("scheme", "")
    return {
        "scheme": scheme if scheme in {"light", "dark"} else "",
        "nothing_live": not settings.HAS_PROMETHEUS,
    }
