from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest
from django.db import connection

from collectors import rollups, storing
from portal.telemetry.models import DayRollup, HourRollup, Series, StepRollup
from tests import worlds

# The day begins at 15:00 UTC in Tokyo.
MIDNIGHT = datetime(2026, 11, 29, 15, tzinfo=UTC)
HOUR = timedelta(hours=1)
NAMES = ["sum_value", "count", "min_value", "max_value", "last_value", "last_at", "observed"]


def test_what_is_partial_is_not_written_over_what_is_complete(world: worlds.World) -> None:
    lines = storing.Lines(world.regions["tokyo"])
    (key,) = lines.keys("quota_used_gpus", pd.DataFrame({"pool": ["a"]}))
    whole = _rows(key, "hour", [(MIDNIGHT + n * HOUR, 5.0) for n in range(3)])
    whole.loc[1, "observed"] = 4
    storing.upsert(HourRollup, whole.assign(quality="complete"), version="v")
    # Of a federated server one store is away: it answers 3 where it answered 5. The second hour
    # was not there as a whole: its partial answer holds more. The fourth is new.
    later = _rows(key, "hour", [(MIDNIGHT + n * HOUR, 3.0) for n in range(4)])
    storing.upsert(HourRollup, later.assign(quality="partial"), version="v")
    found = HourRollup.objects.order_by("hour").values_list("max_value", "quality")
    assert list(found) == [
        (5.0, "complete"), (3.0, "partial"), (5.0, "complete"), (3.0, "partial"),
    ]  # fmt: skip
    # And what is complete is written over what was partial.
    storing.upsert(HourRollup, _rows(key, "hour", [(MIDNIGHT + HOUR, 6.0)]), version="v")
    assert HourRollup.objects.get(hour=MIDNIGHT + HOUR).quality == "complete"


def _rows(series: int, instant: str, values: list[tuple[datetime, float]]) -> pd.DataFrame:
    """Whole hours or steps of a gauge: twelve samples of the value, or one."""
    samples = 12 if instant == "hour" else 1
    made = pd.DataFrame(values, columns=[instant, "max_value"])
    made["series"] = series
    made["sum_value"] = made["max_value"] * samples
    made["min_value"] = made["last_value"] = made["max_value"]
    made["last_at"] = made[instant] + (samples - 1) * rollups.STEP
    made["count"] = made["observed"] = made["expected"] = samples
    made["buckets"] = None
    for name in (instant, "last_at"):
        made[name] = pd.to_datetime(made[name], utc=True)
    return made


def test_lines_are_made_once_and_found_again(world: worlds.World) -> None:
    frame = pd.DataFrame({"pool": ["a", "b", "a"], "project": ["p", "p", "p"]})
    lines = storing.Lines(world.regions["tokyo"])
    first, second, third = lines.keys("quota_used_gpus", frame)
    assert first == third != second
    assert list(lines.keys("quota_used_gpus", frame)) == [first, second, first]
    # Another collection of the same region finds the same lines; another signal has its own.
    again = storing.Lines(world.regions["tokyo"])
    assert list(again.keys("quota_used_gpus", frame.astype("category"))) == [first, second, first]
    assert set(again.keys("quota_nominal_gpus", frame)).isdisjoint({first, second})
    assert Series.objects.count() == 4
    # A signal of a whole region has one line without names.
    (whole,) = again.keys("clock_offset_seconds", pd.DataFrame({"value": [1.0]}))
    assert Series.objects.get(pk=whole).pool == ""


def test_rows_are_written_over_and_equal_ones_stay(world: worlds.World) -> None:
    lines = storing.Lines(world.regions["tokyo"])
    (key,) = lines.keys("quota_used_gpus", pd.DataFrame({"pool": ["a"]}))
    rows = _rows(key, "at", [(MIDNIGHT + n * rollups.STEP, float(n)) for n in range(4)])
    assert storing.upsert(StepRollup, rows, version="v") == 4
    rows.loc[2, ["sum_value", "last_value"]] = 9.0
    changed = storing.upsert(StepRollup, rows, version="v")
    assert changed == (1 if connection.vendor == "postgresql" else 4)
    found = StepRollup.objects.order_by("at").values_list("sum_value", "at")
    assert list(found)[2:] == [
        (9.0, MIDNIGHT + 2 * rollups.STEP), (3.0, MIDNIGHT + 3 * rollups.STEP),
    ]  # fmt: skip
    assert storing.upsert(StepRollup, rows, version="other") == 4


def test_unknown_stays_unknown_and_buckets_stay_in_order(world: worlds.World) -> None:
    lines = storing.Lines(world.regions["tokyo"])
    (key,) = lines.keys("wait_seconds", pd.DataFrame({"lane": ["primary"]}))
    rows = _rows(key, "hour", [(MIDNIGHT, 1.0), (MIDNIGHT + HOUR, 1.0)])
    rows[["sum_value", "min_value", "max_value", "last_value"]] = float("nan")
    rows["last_at"] = pd.Series([pd.NaT, pd.NaT], dtype="datetime64[us, UTC]")
    rows["buckets"] = pd.Series([{"5": 1.0, "10": 2.0, "+Inf": 3.0}, None], dtype=object)
    rows["quality"] = ["partial", "complete"]
    storing.upsert(HourRollup, rows, version="v")
    first, second = HourRollup.objects.order_by("hour")
    assert (first.sum_value, first.min_value, first.last_at) == (None, None, None)
    assert first.buckets == {"5": 1.0, "10": 2.0, "+Inf": 3.0}
    assert (first.quality, second.buckets, second.quality) == ("partial", None, "complete")


def test_a_bucket_that_is_no_number_is_refused(world: worlds.World) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite keeps what Python's json makes of it")
    lines = storing.Lines(world.regions["tokyo"])
    (key,) = lines.keys("wait_seconds", pd.DataFrame({"lane": ["primary"]}))
    rows = _rows(key, "hour", [(MIDNIGHT, 1.0)])
    rows["buckets"] = pd.Series([{"+Inf": float("nan")}], dtype=object)
    with pytest.raises(ValueError, match="JSON"):
        storing.upsert(HourRollup, rows, version="v")


def test_a_day_is_made_of_its_hours_once_it_is_over(world: worlds.World) -> None:
    region = world.regions["tokyo"]
    (key,) = storing.Lines(region).keys("quota_used_gpus", pd.DataFrame({"pool": ["a"]}))
    hours = [MIDNIGHT + n * HOUR for n in range(25)]
    rows = _rows(key, "hour", [(hour, float(n)) for n, hour in enumerate(hours)])
    storing.upsert(HourRollup, rows, version="v")

    def renew(until: datetime) -> int:
        return storing.renew_days(
            region=region, signal="quota_used_gpus", version="v", hours=hours, until=until
        )

    assert renew(MIDNIGHT + 23 * HOUR) == 0
    assert renew(MIDNIGHT + 24 * HOUR) == 1
    day = DayRollup.objects.get()
    # 12 samples of each of 0 … 23, whose sum is 276; the 24 of the next day is not in it.
    assert [getattr(day, name) for name in NAMES] == [
        12 * 276.0, 288.0, 0.0, 23.0, 23.0, hours[23] + 11 * rollups.STEP, 288,
    ]  # fmt: skip
    assert (day.day, day.expected) == (MIDNIGHT, 288)


def test_a_day_is_not_made_anew_of_the_few_hours_that_came_again(world: worlds.World) -> None:
    """Its hours are deleted after two years; somebody asks for two of them once more."""
    region = world.regions["tokyo"]
    (key,) = storing.Lines(region).keys("quota_used_gpus", pd.DataFrame({"pool": ["a"]}))
    hours = [MIDNIGHT + n * HOUR for n in range(24)]
    of = storing.Of(region=region, signal="quota_used_gpus", version="v")

    def renew() -> None:
        storing.renew_days(**of, hours=hours, until=MIDNIGHT + 24 * HOUR)

    storing.upsert(HourRollup, _rows(key, "hour", [(hour, 8.0) for hour in hours]), version="v")
    renew()
    HourRollup.objects.all().delete()
    storing.upsert(HourRollup, _rows(key, "hour", [(hours[n], 8.0) for n in (20, 21)]), version="v")
    renew()
    found = DayRollup.objects.values_list("sum_value", "observed").get()
    assert found == (288 * 8.0, 288)
    # When all of them came again, it is made anew.
    storing.upsert(HourRollup, _rows(key, "hour", [(hour, 9.0) for hour in hours]), version="v")
    renew()
    assert DayRollup.objects.get().sum_value == 288 * 9.0


def test_one_step_that_is_partial_makes_its_hour_so(world: worlds.World) -> None:
    region = world.regions["tokyo"]
    (key,) = storing.Lines(region).keys("quota_used_gpus", pd.DataFrame({"pool": ["a"]}))
    steps = _rows(key, "at", [(MIDNIGHT + n * rollups.STEP, 5.0) for n in range(12)])
    steps["quality"] = ["complete"] * 5 + ["partial"] + ["complete"] * 6
    storing.upsert(StepRollup, steps, version="v")
    of = storing.Of(region=region, signal="quota_used_gpus", version="v")
    storing.renew_hours(**of, hours=[MIDNIGHT])
    assert HourRollup.objects.get().quality == "partial"
    # The step came as a whole: so is the hour.
    storing.upsert(StepRollup, steps.assign(quality="complete"), version="v")
    storing.renew_hours(**of, hours=[MIDNIGHT])
    assert HourRollup.objects.get().quality == "complete"


def test_of_hours_asked_as_wholes_more_events_stay(world: worlds.World) -> None:
    """An increase over an hour says nothing of its steps: a server that forgot answers less."""
    (key,) = storing.Lines(world.regions["tokyo"]).keys("x", pd.DataFrame({"pool": ["a"]}))
    rows = _rows(key, "hour", [(MIDNIGHT, 5.0)])
    rows[["min_value", "max_value", "last_value"]] = float("nan")
    rows["last_at"] = pd.Series([pd.NaT], dtype="datetime64[us, UTC]")

    def store(value: float, *, whole_hours: bool = True) -> float | None:
        given = rows.assign(sum_value=value)
        storing.upsert(HourRollup, given, version="v", whole_hours=whole_hours)
        return HourRollup.objects.get().sum_value

    assert store(60.0) == 60.0
    assert store(15.0) == 60.0
    assert store(61.0) == 61.0
    # Made of its steps it is what they say: an event may have moved to the next hour.
    assert store(59.0, whole_hours=False) == 59.0


def test_a_day_whose_buckets_became_finer_is_read_by_the_bounds_that_all_hours_have(
    world: worlds.World,
) -> None:
    region = world.regions["tokyo"]
    (key,) = storing.Lines(region).keys("wait_seconds", pd.DataFrame({"lane": ["primary"]}))
    rows = _rows(key, "hour", [(MIDNIGHT + n * HOUR, 1.0) for n in range(3)])
    rows[["min_value", "max_value", "last_value"]] = float("nan")
    rows["last_at"] = pd.Series([pd.NaT] * 3, dtype="datetime64[us, UTC]")
    rows["count"] = [3.0, 4.0, 0.0]
    # From the second hour on there is a bound of 20; the third, without events, lacks it again.
    rows["buckets"] = pd.Series(
        [{"10": 1.0, "+Inf": 3.0}, {"10": 1.0, "20": 3.0, "+Inf": 4.0}, {"+Inf": 0.0}], dtype=object
    )
    storing.upsert(HourRollup, rows, version="v")
    storing.renew_days(
        region=region, signal="wait_seconds", version="v", hours=[MIDNIGHT],
        until=MIDNIGHT + 24 * HOUR,
    )  # fmt: skip
    # At or below 10: 1 + 1; at or below 20 nobody knows of the first hour; 3 + 4 in all.
    assert DayRollup.objects.get().buckets == {"10": 2.0, "+Inf": 7.0}
