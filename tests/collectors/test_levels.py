"""Whichever level a figure is read from, it is the same figure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from pytest_django import Settings

from collectors import rollups, storing
from collectors.rollups import HOUR, STEP
from portal.telemetry import selectors
from portal.telemetry.models import DayRollup, HourRollup, StepRollup
from tests import worlds

JST = ZoneInfo("Asia/Tokyo")
START = datetime(2026, 11, 25, 15, tzinfo=UTC)  # midnight of the 26th in Tokyo
DAYS = 3
END = START + DAYS * timedelta(days=1)
SIGNALS = {"gauge": "quota_used_gpus", "counter": "admitted_jobs", "histogram": "wait_seconds"}


def _steps(kind: str, rng: np.random.Generator, *, share: float, keys: list[int]) -> pd.DataFrame:
    """Steps of several series over three days, of which a share is missing."""
    grid = pd.date_range(START, END, freq=STEP, inclusive="left")
    rows = []
    for key in keys:
        # A share of 0.1 makes one series silent for a stretch of some hours, and others in places.
        seen = rng.random(len(grid)) >= share / 10
        if share and key == keys[0]:
            seen[40:100] = False
        at = grid[seen]
        values = rng.integers(0, 64, len(at)).astype(float)
        made = pd.DataFrame({"series": key, "at": at, "sum_value": values, "count": 1.0})
        made[["min_value", "max_value", "last_value"]] = np.nan
        made["last_at"] = pd.Series(pd.NaT, index=made.index, dtype="datetime64[us, UTC]")
        made["buckets"] = None
        if kind == "gauge":
            for name in ("min_value", "max_value", "last_value"):
                made[name] = values
            made["last_at"] = made["at"]
        if kind == "histogram":
            made["count"] = values
            made["buckets"] = pd.Series([{"10": v // 2, "+Inf": v} for v in values], dtype=object)
        rows.append(made)
    whole = pd.concat(rows, ignore_index=True)
    whole["observed"] = whole["expected"] = 1
    return whole.assign(quality="complete")


def _stored(world: worlds.World, kind: str, *, seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    names = pd.DataFrame({"project": ["a", "a", "b", "b"], "lane": ["x", "y", "x", "y"]})
    if kind == "gauge":
        names = names.rename(columns={"lane": "pool"})
    for name in ("tokyo", "osaka"):
        region = world.regions[name]
        keys = storing.Lines(region).keys(SIGNALS[kind], names).tolist()
        steps = _steps(kind, rng, share=share, keys=keys)
        storing.upsert(StepRollup, steps, version=f"v-{name}")
        made = rollups.into_hours(steps)
        storing.upsert(HourRollup, made, version=f"v-{name}")
        hours = [START + n * HOUR for n in range(DAYS * 24)]
        storing.renew_days(
            region=region, signal=SIGNALS[kind], version=f"v-{name}", hours=hours, until=END
        )


def _summed(frame: pd.DataFrame, at: str, by: list[str]) -> pd.DataFrame:
    """Days as plain sums of a finer level, without any of the code under test."""
    local = frame[at].dt.tz_convert(JST).dt.normalize().dt.tz_convert("UTC")
    grouped = frame.assign(day=local).groupby(["day", *by])
    columns = ["sum_value", "count", "observed"]
    total: pd.DataFrame = grouped[columns].sum()
    if frame["buckets"].notna().any():
        total["at or below 10"] = grouped["buckets"].agg(
            lambda all_: sum(b["10"] for b in all_ if "10" in b)
        )
    return total


def _by_day(frame: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    indexed = frame.set_index(["day", *by])
    total: pd.DataFrame = indexed[["sum_value", "count", "observed"]].copy()
    if frame["buckets"].notna().any():
        total["at or below 10"] = [b["10"] for b in indexed["buckets"]]
    return total


@pytest.mark.parametrize("by", [[], ["project"], ["region"], ["region", "project"]], ids=str)
@pytest.mark.parametrize("share", [0.0, 0.1], ids=["whole", "with gaps"])
@pytest.mark.parametrize("kind", SIGNALS)
def test_days_are_the_sums_of_their_hours(
    world: worlds.World, kind: str, share: float, by: list[str]
) -> None:
    _stored(world, kind, seed=len(by), share=share)
    asked = {"signal": SIGNALS[kind], "start": START, "end": END, "by": by}
    hours = selectors.hours(**asked)  # type: ignore[arg-type]
    days = selectors.days(**asked)  # type: ignore[arg-type]
    assert days["day"].nunique() == DAYS
    pd.testing.assert_frame_equal(
        _by_day(days, by), _summed(hours, "hour", by), check_dtype=False, check_index_type=False
    )


@pytest.mark.parametrize("kind", SIGNALS)
def test_hours_are_the_sums_of_their_steps(world: worlds.World, kind: str) -> None:
    _stored(world, kind, seed=7, share=0.0)
    asked = {"signal": SIGNALS[kind], "start": START, "end": START + 6 * HOUR, "by": ["project"]}
    steps = selectors.steps(**asked)  # type: ignore[arg-type]
    hours = selectors.hours(**asked)  # type: ignore[arg-type]
    found = steps.assign(hour=steps["at"].dt.floor("h")).groupby(["hour", "project"])
    wanted = hours.set_index(["hour", "project"])
    assert found["sum_value"].sum().tolist() == pytest.approx(wanted["sum_value"].tolist())
    assert found["count"].sum().tolist() == pytest.approx(wanted["count"].tolist())
    assert found["observed"].sum().tolist() == wanted["observed"].tolist()


def test_whole_days_are_read_from_their_own_rows(world: worlds.World) -> None:
    _stored(world, "gauge", seed=1, share=0.0)
    HourRollup.objects.filter(hour__gte=START + HOUR).delete()
    days = selectors.days(signal="quota_used_gpus", start=START, end=END, by=[])
    assert len(days) == DAYS  # the hours are gone and were not asked for
    assert set(days["observed"]) == {8 * 288}


def test_days_whose_hours_are_no_longer_kept_stay(world: worlds.World) -> None:
    _stored(world, "gauge", seed=1, share=0.1)
    asked = {"signal": "quota_used_gpus", "start": START, "end": END, "by": ["region"]}
    before = selectors.days(**asked)  # type: ignore[arg-type]
    HourRollup.objects.all().delete()
    after = selectors.days(**asked)  # type: ignore[arg-type]
    assert after["observed"].tolist() == before["observed"].tolist()
    assert len(after) == DAYS * 2


def test_a_day_with_a_second_version_is_read_from_its_hours(world: worlds.World) -> None:
    _stored(world, "gauge", seed=1, share=0.0)
    row = HourRollup.objects.filter(series__region__name="tokyo").earliest("hour")
    row.pk, row.version, row.sum_value = None, "import-1", 1e6
    row.save()
    day = DayRollup.objects.filter(series=row.series_id).earliest("day")
    day.pk, day.version, day.sum_value = None, "import-1", 1e6
    day.save()
    days = selectors.days(signal="quota_used_gpus", start=START, end=END, by=[])
    assert days["sum_value"].max() < 1e6  # an import shows only where nothing was collected


def test_only_midnights_of_the_site_begin_a_day(world: worlds.World) -> None:
    with pytest.raises(ValueError, match="no midnight in Asia/Tokyo"):
        selectors.days(signal="x", start=START + HOUR, end=END)


def test_a_day_without_a_midnight_begins_at_one_o_clock(
    world: worlds.World, settings: Settings
) -> None:
    """In Cairo clocks go from midnight to one o'clock on 24 April 2026: that day has 23 hours."""
    settings.REPORT_TIMEZONE = "Africa/Cairo"
    # Before it is UTC+2, after it UTC+3.
    begins, ends = datetime(2026, 4, 23, 22, tzinfo=UTC), datetime(2026, 4, 24, 21, tzinfo=UTC)
    (key,) = storing.Lines(world.regions["tokyo"]).keys("quota_used_gpus", pd.DataFrame([{}]))
    hours = pd.date_range(begins - HOUR, ends, freq="h")  # the last of the day before, one after
    rows = pd.DataFrame({"series": key, "hour": hours, "sum_value": 24.0, "count": 12.0})
    rows[["min_value", "max_value", "last_value"]] = 2.0
    rows["observed"] = rows["expected"] = 12
    rows["last_at"], rows["buckets"] = rows["hour"], None
    storing.upsert(HourRollup, rows, version="v")
    asked = {"signal": "quota_used_gpus", "start": begins, "end": ends, "by": []}
    (from_hours,) = selectors.days(**asked).to_dict("records")  # type: ignore[arg-type]
    assert (from_hours["day"], from_hours["observed"]) == (pd.Timestamp(begins), 23 * 12)
    assert storing.renew_days(
        region=world.regions["tokyo"], signal="quota_used_gpus", version="v",
        hours=[begins], until=ends,
    ) == 1  # fmt: skip
    (from_day,) = selectors.days(**asked).to_dict("records")  # type: ignore[arg-type]
    assert from_day["day"] == pd.Timestamp(begins)
    assert (from_day["sum_value"], from_day["expected"]) == (23 * 24.0, 23 * 12)
