"""A region: sentences, figures, one axis, pools, and how old all of that is."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client

from portal.accounts.models import User

SignedIn = Callable[[User], Client]


@pytest.mark.usefixtures("busy")
def test_it_shows_freshness_figures_chart_and_pools(ben: User, signed_in: SignedIn) -> None:
    page = signed_in(ben).get("/regions/tokyo/").content.decode()
    assert "live" in page
    assert "47 %" in page  # 30 of 64 reporting GPUs work
    assert 'data-figure="hours-figure"' in page
    assert "tokyo-a-h100" in page
    assert "1 primary run waits" in page


@pytest.mark.usefixtures("busy")
def test_other_tenants_stay_unnamed_for_a_lead(aiko: User, signed_in: SignedIn) -> None:
    page = signed_in(aiko).get("/regions/tokyo/").content.decode()
    assert "while another project borrows 8 GPUs above its quota" in page
    assert "robotics" not in page


@pytest.mark.parametrize("chosen", ["24h", "7d", "week", "4w", "2026-W48", "nonsense"])
def test_every_window_opens_and_an_unknown_one_is_the_default(
    chosen: str, ben: User, signed_in: SignedIn
) -> None:
    assert signed_in(ben).get("/regions/tokyo/", {"range": chosen}).status_code == 200


def test_old_data_is_never_shown_as_the_present(
    gauge: Callable[..., None], ben: User, signed_in: SignedIn
) -> None:
    gauge("quota_used_gpus", 8, age=timedelta(hours=5), pool="tokyo-a-h100", project="speech")
    page = signed_in(ben).get("/regions/tokyo/").content.decode()
    assert "stale" in page
    assert "Free, last known" in page
    assert "Free now" not in page
    assert "Prometheus has not answered for 5 h" in page


def test_an_unknown_region_is_not_there(ben: User, signed_in: SignedIn) -> None:
    assert signed_in(ben).get("/regions/kyoto/").status_code == 404
