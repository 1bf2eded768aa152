"""A pool: quota by project, who holds it, who waits."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.test import Client

from portal.accounts.models import User
from portal.fleet.models import Pool
from portal.policy import services as policy
from portal.tenants.models import Project

SignedIn = Callable[[User], Client]


@pytest.mark.usefixtures("busy")
def test_ops_see_every_project_by_name(ben: User, signed_in: SignedIn) -> None:
    page = signed_in(ben).get("/pools/tokyo-a-h100/").content.decode()
    assert all(name in page for name in ("speech", "vision", "robotics"))
    assert 'aria-label="24 own, 8 borrowed, nominal 24, limit 64"' in page


@pytest.mark.usefixtures("busy")
def test_a_lead_sees_their_own_and_the_others_in_one_row(chidi: User, signed_in: SignedIn) -> None:
    page = signed_in(chidi).get("/pools/tokyo-a-h100/").content.decode()
    assert "robotics" in page
    assert "2 other projects" in page
    assert "speech" not in page
    assert "vision" not in page


def test_an_unknown_pool_is_not_there(ben: User, signed_in: SignedIn) -> None:
    assert signed_in(ben).get("/pools/nowhere/").status_code == 404


@pytest.mark.usefixtures("world")
def test_a_pool_for_which_nobody_waits_is_shown(chidi: User, signed_in: SignedIn) -> None:
    assert signed_in(chidi).get("/pools/tokyo-a-h100/").status_code == 200


@pytest.mark.usefixtures("busy")
def test_how_much_anothers_quota_changed_is_not_said(
    aiko: User, ben: User, chidi: User, signed_in: SignedIn, now: datetime
) -> None:
    policy.change_quota(
        project=Project.objects.get(name="speech"), pool=Pool.objects.get(name="tokyo-a-h100"),
        nominal_gpus=20, starts_at=now - timedelta(hours=3), by=ben, because="A shorter run.",
        now=now - timedelta(hours=3),
    )  # fmt: skip

    assert "\\u2192 20" in signed_in(aiko).get("/projects/speech/").content.decode()
    for address in ("/pools/tokyo-a-h100/", "/regions/tokyo/"):
        page = signed_in(chidi).get(address).content.decode()
        assert "1 quota change" in page
        assert "\\u2192 20" not in page
