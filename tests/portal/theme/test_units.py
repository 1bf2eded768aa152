"""Figures as people read them."""

from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest
from django.template import Context, Template
from django.utils import translation

from portal.theme.templatetags import units

NOW = datetime(2026, 11, 30, 3, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (4.25, "4.2 s"),
        (45, "45 s"),
        (59.7, "1 min"),
        (240, "4 min"),
        (3599, "1 h"),
        (13200, "3 h 40 min"),
        (3900, "1 h 05 min"),
        (-2400, "−40 min"),
        (5 * 86400 + 7200, "5 d 2 h"),
    ],
)
def test_durations_are_said_as_people_say_them(seconds: float, text: str) -> None:
    assert units.duration(seconds) == text


@pytest.mark.parametrize("unknown", [None, float("nan"), pd.NA, pd.NaT])
def test_unknown_is_a_dash_and_never_0(unknown: object) -> None:
    for show in (units.duration, units.gpu_hours, units.ratio, units.number, units.signed):
        assert show(unknown) == "–"
    assert units.local(unknown) == "–"  # type: ignore[arg-type]
    assert units.at_least(units.duration(unknown), "yes") == "–"


def test_gpu_hours_ratios_and_changes() -> None:
    assert units.gpu_hours(212 * 3600) == "212 GPU·h"
    assert units.gpu_hours(3.25 * 3600) == "3.2 GPU·h"
    assert units.gpu_hours(12345 * 3600) == "12,345 GPU·h"
    assert units.ratio(0.784) == "78 %"
    assert (units.signed(16), units.signed(-3), units.signed(0)) == ("+16", "−3", "0")
    assert units.at_least("3 h 40 min", "still waiting") == "≥ 3 h 40 min"


def test_instants_are_local_and_name_their_zone() -> None:
    assert units.local(NOW, "Asia/Tokyo") == "30 Nov 12:00 JST"
    assert units.local_day(NOW + timedelta(hours=13), "Asia/Tokyo") == "1 Dec 2026"
    assert units.ago(NOW - timedelta(minutes=2), NOW) == "2 min ago"
    assert units.ago(None, NOW) == "never"


def test_a_quota_bar_says_its_numbers_to_a_screen_reader() -> None:
    page = Template("{% quota_bar 64 48 96 %}").render(Context())
    assert 'aria-label="48 own, 16 borrowed, nominal 48, limit 96"' in page
    assert 'x="50.00%"' in page
    assert "style=" not in page
    with translation.override("en"):
        assert "–" in Template("{% quota_bar None 48 96 %}").render(Context())
