"""The landing page differs by role and shows nobody what is not theirs."""

from collections.abc import Callable

import pytest
from django.test import Client

from portal.accounts.models import User

SignedIn = Callable[[User], Client]


@pytest.mark.usefixtures("busy")
def test_a_lead_sees_their_quota_their_waits_and_may_ask(aiko: User, signed_in: SignedIn) -> None:
    page = signed_in(aiko).get("/").content.decode()
    assert "What you have and use" in page
    assert 'aria-label="8 own, 0 borrowed, nominal 24, limit 40"' in page
    assert "≥ " in page
    assert "Ask for more" in page
    assert "robotics" not in page


@pytest.mark.usefixtures("busy")
def test_ops_see_what_needs_attention_in_every_region(ben: User, signed_in: SignedIn) -> None:
    page = signed_in(ben).get("/").content.decode()
    assert "while robotics borrows 8 GPUs above its quota" in page
    assert "Nothing was ever collected here" in page
    assert "Ask for more" not in page


def test_an_auditor_sees_the_same_as_ops(dana: User, signed_in: SignedIn) -> None:
    assert "Needs attention" in signed_in(dana).get("/").content.decode()


def test_nobody_gets_in_without_signing_in(client: Client, db: None) -> None:
    assert client.get("/").status_code == 302
