"""What every page needs to draw its frame."""

from django.http import HttpRequest


def page(request: HttpRequest) -> dict[str, object]:
    """The chosen colour scheme: `light`, `dark` or empty for the system's own."""
    scheme = request.COOKIES.get("scheme", "")
    return {"scheme": scheme if scheme in {"light", "dark"} else ""}
