from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest

from collectors import retention, storing
from collectors.rollups import HOUR, STEP
from portal.telemetry.models import DayRollup, HourCoverage, HourRollup, StepRollup
from tests import worlds

# 18:00 of the 30th in Tokyo; the 30th began there at 15:00 UTC of the 29th.
NOW = datetime(2026, 11, 30, 9, tzinfo=UTC)
TODAY = datetime(2026, 11, 29, 15, tzinfo=UTC)
DAY = timedelta(days=1)


def _store(world: worlds.World, level: type, instants: list[datetime]) -> None:
    (key,) = storing.Lines(world.regions["tokyo"]).keys("x", pd.DataFrame({"pool": ["a"]}))
    name = storing.LEVELS[level].instant
    rows = pd.DataFrame({"series": key, name: pd.to_datetime(instants, utc=True), "sum_value": 1.0})
    for column in ("count", "min_value", "max_value", "last_value"):
        rows[column] = 1.0
    rows["observed"] = rows["expected"] = 1
    rows["last_at"], rows["buckets"] = rows[name], None
    storing.upsert(level, rows, version="v")


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEEP_STEPS_DAYS", "1")
    monkeypatch.setenv("KEEP_HOURS_DAYS", "2")
    monkeypatch.setenv("KEEP_DAYS_DAYS", "")


def test_each_level_is_kept_for_as_long_as_the_site_says(
    world: worlds.World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "AT_ONCE", 7)  # several batches, the last not full
    _store(world, StepRollup, [NOW - DAY + n * STEP for n in range(-20, 3)])
    _store(world, HourRollup, [TODAY - 2 * DAY + n * HOUR for n in range(-30, 3)])
    HourCoverage.objects.create(
        region=world.regions["tokyo"], signal="x", hour=TODAY - 3 * DAY, observed=1, expected=12,
        series=1,
    )  # fmt: skip
    assert retention.prune(now=NOW) == {"steps": 20, "hours": 30, "days": 0}
    assert StepRollup.objects.earliest("at").at == NOW - DAY
    # 30 hours back lie 6 of the day before: both days were made before their hours went.
    assert HourRollup.objects.earliest("hour").hour == TODAY - 2 * DAY
    assert list(DayRollup.objects.order_by("day").values_list("day", "sum_value")) == [
        (TODAY - 4 * DAY, 6.0), (TODAY - 3 * DAY, 24.0),
    ]  # fmt: skip
    assert not HourCoverage.objects.exists()
    assert retention.prune(now=NOW) == {"steps": 0, "hours": 0, "days": 0}


def test_steps_go_with_the_whole_of_their_hour(world: worlds.World) -> None:
    # At 09:35 what is older than 09:35 of the day before would be half an hour.
    hour = NOW - DAY
    _store(world, StepRollup, [hour + n * STEP for n in range(-2, 12)])
    assert retention.prune(now=NOW + 7 * STEP)["steps"] == 2
    assert StepRollup.objects.earliest("at").at == hour


def test_a_day_is_not_made_anew_of_the_hours_that_are_left(
    world: worlds.World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that was ended in between has deleted some hours of a day."""
    hours = [TODAY - 3 * DAY + n * HOUR for n in range(24)]
    _store(world, HourRollup, hours)
    _store(world, DayRollup, [TODAY - 3 * DAY])
    DayRollup.objects.update(sum_value=24.0)
    HourRollup.objects.filter(hour__lt=hours[10]).delete()
    retention.prune(now=NOW)
    assert DayRollup.objects.get().sum_value == 24.0


def test_days_go_only_when_a_site_says_so(
    world: worlds.World, monkeypatch: pytest.MonkeyPatch
) -> None:
    _store(world, DayRollup, [TODAY - n * DAY for n in (0, 10, 11)])
    assert retention.prune(now=NOW)["days"] == 0
    monkeypatch.setenv("KEEP_DAYS_DAYS", "10")
    assert retention.prune(now=NOW)["days"] == 1
