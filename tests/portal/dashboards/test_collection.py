"""How good the data is, and what to do."""

from collections.abc import Callable

import pytest
from django.test import Client

from portal.accounts.models import User

SignedIn = Callable[[User], Client]


@pytest.mark.usefixtures("busy")
def test_it_says_what_is_live_and_where_nothing_ever_came(ben: User, signed_in: SignedIn) -> None:
    page = signed_in(ben).get("/collection/").content.decode()
    assert "quota_used_gpus" in page
    assert "Nothing was ever collected here" in page
    assert "manage.py collect osaka" in page
