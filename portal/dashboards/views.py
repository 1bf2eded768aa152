"""The dashboards' pages."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


def overview(request: HttpRequest) -> HttpResponse:
    """What matters now, by role."""
    return render(request, "dashboards/overview.html")


def regions(request: HttpRequest) -> HttpResponse:
    """Every region, free GPUs first."""
    return render(request, "dashboards/overview.html")


def region(request: HttpRequest, name: str) -> HttpResponse:
    """One region."""
    return render(request, "dashboards/overview.html")


def pool(request: HttpRequest, name: str) -> HttpResponse:
    """One pool."""
    return render(request, "dashboards/overview.html")


def projects(request: HttpRequest) -> HttpResponse:
    """The projects one may see."""
    return render(request, "dashboards/overview.html")


def project(request: HttpRequest, name: str) -> HttpResponse:
    """One project."""
    return render(request, "dashboards/overview.html")


def collection(request: HttpRequest) -> HttpResponse:
    """How good the data is."""
    return render(request, "dashboards/overview.html")
