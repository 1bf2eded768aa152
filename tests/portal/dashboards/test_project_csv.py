"""The hours of a project as a file."""

from collections.abc import Callable

import pytest
from django.test import Client

from portal.accounts.models import User

SignedIn = Callable[[User], Client]


@pytest.mark.usefixtures("busy")
def test_it_holds_what_was_held_and_the_nominal_quota(aiko: User, signed_in: SignedIn) -> None:
    answer = signed_in(aiko).get("/projects/speech/hours.csv", {"range": "24h"})
    lines = answer.content.decode("utf-8-sig").splitlines()
    assert lines[0] == "hour,tokyo-a-h100,nominal_gpus"
    assert any(line.endswith(",8.0,24.0") for line in lines)


def test_for_another_tenant_it_does_not_exist(chidi: User, signed_in: SignedIn) -> None:
    assert signed_in(chidi).get("/projects/speech/hours.csv").status_code == 404
