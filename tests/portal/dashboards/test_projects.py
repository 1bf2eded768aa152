"""The projects one may see, and no others."""

from collections.abc import Callable

import pytest
from django.test import Client

from portal.accounts.models import User

SignedIn = Callable[[User], Client]


@pytest.mark.usefixtures("busy")
def test_each_sees_their_own(aiko: User, emi: User, dana: User, signed_in: SignedIn) -> None:
    pages = {who: signed_in(who).get("/projects/").content.decode() for who in (aiko, emi, dana)}
    named = {
        who.first_name: {n for n in ("speech", "vision", "robotics") if f"/projects/{n}/" in page}
        for who, page in pages.items()
    }
    assert named == {
        "Aiko": {"speech"},
        "Emi": {"speech", "vision"},
        "Dana": {"speech", "vision", "robotics"},
    }
