"""A region: sentences, figures, one axis, pools, and how old all of that is."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.core.cache import cache
from django.test import Client

from portal.accounts.models import User
from portal.telemetry.models import HourRollup, Watermark

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


@pytest.mark.usefixtures("busy")
def test_a_changed_query_is_marked_on_the_axis(
    ben: User, signed_in: SignedIn, now: datetime
) -> None:
    assert "query changed" not in signed_in(ben).get("/regions/tokyo/").content.decode()
    # Of quota_used_gpus the last six hours were asked otherwise.
    rows = HourRollup.objects.filter(series__signal="quota_used_gpus")
    rows.filter(hour__gt=now - timedelta(hours=6)).update(version="2")
    first = Watermark.objects.get(signal="quota_used_gpus")
    Watermark.objects.create(
        region=first.region, signal=first.signal, version="2",
        collected_until=now, last_sample_at=now,
    )  # fmt: skip
    first.collected_until = now - timedelta(hours=6)
    first.save()
    cache.clear()
    assert "query changed" in signed_in(ben).get("/regions/tokyo/").content.decode()
