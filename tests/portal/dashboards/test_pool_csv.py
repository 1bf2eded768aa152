"""The hours of a pool as a file."""

from collections.abc import Callable

import pytest
from django.test import Client

from portal.accounts.models import User

SignedIn = Callable[[User], Client]


@pytest.mark.usefixtures("busy")
def test_others_are_one_column_for_a_lead(chidi: User, signed_in: SignedIn) -> None:
    answer = signed_in(chidi).get("/pools/tokyo-a-h100/hours.csv", {"range": "24h"})
    lines = answer.content.decode("utf-8-sig").splitlines()
    assert lines[0] == "hour,robotics,others"
    assert any(line.endswith(",32.0,8.0") for line in lines)
