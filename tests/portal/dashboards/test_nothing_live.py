"""Without any Prometheus, every page says that nothing on it is live."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from portal import env
from portal.accounts.models import User

SignIn = Callable[[User], Client]


@pytest.mark.parametrize("configured", [True, False])
def test_a_page_says_whether_anything_is_live(
    configured: bool,
    aiko: User,
    signed_in: SignIn,
    settings: Settings,
) -> None:
    settings.HAS_PROMETHEUS = configured
    html = signed_in(aiko).get(reverse("dashboards:overview")).content.decode()
    assert ("No Prometheus is configured" in html) is not configured


def test_one_region_with_a_prometheus_is_enough() -> None:
    assert not env.in_any_region(env.PROMETHEUS_URL, {"PROMETHEUS_URL": "", "PATH": "/bin"})
    assert env.in_any_region(env.PROMETHEUS_URL, {"PROMETHEUS_URL_TOKYO": "http://p:9090"})
