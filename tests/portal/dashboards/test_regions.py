"""All regions on cards, unknown never shown as 0."""

from collections.abc import Callable

import pytest
from django.test import Client

from portal.accounts.models import User

SignedIn = Callable[[User], Client]


@pytest.mark.usefixtures("busy")
def test_free_gpus_come_first_and_unknown_is_a_dash(ben: User, signed_in: SignedIn) -> None:
    page = " ".join(signed_in(ben).get("/regions/").content.decode().split())
    assert '<p class="v">24 <small>of 80 GPUs free' in page
    assert '<p class="v">– <small>of 32 GPUs free' in page


@pytest.mark.usefixtures("busy")
def test_a_lead_sees_no_names_of_others(chidi: User, signed_in: SignedIn) -> None:
    assert "speech" not in signed_in(chidi).get("/regions/").content.decode()
