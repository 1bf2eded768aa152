"""The hours of a region as a file."""

from collections.abc import Callable

import pytest
from django.test import Client

from portal.accounts.models import User

SignedIn = Callable[[User], Client]


@pytest.mark.usefixtures("busy")
def test_the_file_holds_the_figures_of_the_chart(ben: User, signed_in: SignedIn) -> None:
    answer = signed_in(ben).get("/regions/tokyo/hours.csv", {"range": "24h"})
    lines = answer.content.decode("utf-8-sig").splitlines()
    assert lines[0].startswith("hour,gpus_in_use,gpus_held_idle,gpus_free,gpus_reporting")
    assert any(line.split(",")[1:5] == ["30.0", "10.0", "24.0", "64.0"] for line in lines)


def test_an_hour_without_samples_is_empty_and_not_0(ben: User, signed_in: SignedIn) -> None:
    lines = signed_in(ben).get("/regions/tokyo/hours.csv").content.decode("utf-8-sig").splitlines()
    assert len(lines) == 1 + 168
    assert set(lines[1].split(",")[1:]) == {""}
