"""A project: quota, waits, jobs and why they wait."""

from collections.abc import Callable

import pytest
from django.test import Client

from portal.accounts.models import User

SignedIn = Callable[[User], Client]


@pytest.mark.usefixtures("busy")
def test_a_lead_sees_why_their_run_waits(aiko: User, signed_in: SignedIn) -> None:
    page = signed_in(aiko).get("/projects/speech/").content.decode()
    assert "hungry" in page
    assert "The quota is there, but too few GPUs are free." in page
    assert 'data-figure="held-figure"' in page


@pytest.mark.usefixtures("busy")
def test_the_reason_is_said_in_japanese_too(aiko: User, signed_in: SignedIn) -> None:
    page = signed_in(aiko).get("/projects/speech/", headers={"accept-language": "ja"})
    assert "空いているGPUが足りません" in page.content.decode()


def test_for_another_tenant_it_does_not_exist(chidi: User, signed_in: SignedIn) -> None:
    assert signed_in(chidi).get("/projects/speech/").status_code == 404
