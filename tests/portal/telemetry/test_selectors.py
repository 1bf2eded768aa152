import math
from datetime import timedelta

import pytest
from django.test.utils import CaptureQueriesContext

from portal.telemetry import selectors
from portal.telemetry.models import CollectionRun, RunState, SignalFetch, Watermark
from tests import worlds
from tests.portal.telemetry.rows import counter_hour, gauge_hour, histogram_hour, series
from tests.worlds import NOW

HOUR = NOW - timedelta(hours=3)
ONE = timedelta(hours=1)


def test_hours_of_a_gauge_add_up_over_the_labels_not_asked_for(world: worlds.World) -> None:
    tokyo = world.regions["tokyo"]
    for project, used in [("speech", 8.0), ("robotics", 16.0)]:
        line = series(tokyo, "quota_used_gpus", pool="tokyo-a-h100", project=project)
        gauge_hour(line, HOUR, used)
    frame = selectors.hours(signal="quota_used_gpus", start=HOUR, end=NOW, by=["pool"])
    assert len(frame) == 1
    row = frame.iloc[0]
    assert row["sum_value"] / row["count"] == 24
    assert (row["observed"], row["expected"]) == (24, 24)
    assert (row["min_value"], row["max_value"]) == (24, 24)


def test_a_gauge_seen_for_half_the_hour_counts_with_its_own_mean(world: worlds.World) -> None:
    tokyo = world.regions["tokyo"]
    gauge_hour(series(tokyo, "gpu_reporting_gpus", pool="a"), HOUR, 8)
    gauge_hour(series(tokyo, "gpu_reporting_gpus", pool="b"), HOUR, 4, seen=6)
    row = selectors.hours(signal="gpu_reporting_gpus", start=HOUR, end=NOW, by=[]).iloc[0]
    assert row["sum_value"] / row["count"] == 12
    assert row["observed"] == 18


def test_hours_of_a_counter_are_increases(world: worlds.World) -> None:
    tokyo = world.regions["tokyo"]
    for lane in ("primary", "background"):
        counter_hour(series(tokyo, "admitted_jobs", project="speech", lane=lane), HOUR, 3)
    row = selectors.hours(signal="admitted_jobs", start=HOUR, end=NOW, by=["project"]).iloc[0]
    assert row["sum_value"] == 6
    assert row["buckets"] is None
    assert math.isnan(row["min_value"])


def test_hours_of_a_histogram_add_buckets_and_counts(world: worlds.World) -> None:
    for region in world.regions.values():
        line = series(region, "wait_seconds", project="robotics", lane="primary")
        histogram_hour(line, HOUR, {"10": 1.0, "20": 3.0, "+Inf": 3.0}, 40)
    row = selectors.hours(signal="wait_seconds", start=HOUR, end=NOW, by=["lane"]).iloc[0]
    assert row["buckets"] == {"10": 2.0, "20": 6.0, "+Inf": 6.0}
    assert (row["count"], row["sum_value"]) == (6, 80)


def test_hours_can_be_kept_apart_by_region_and_limited_to_some(world: worlds.World) -> None:
    for name, region in world.regions.items():
        gauge_hour(series(region, "gpu_reporting_gpus", pool=f"{name}-pool"), HOUR, 8)
    both = selectors.hours(signal="gpu_reporting_gpus", start=HOUR, end=NOW, by=["region"])
    assert sorted(both["region"]) == ["osaka", "tokyo"]
    one = selectors.hours(signal="gpu_reporting_gpus", start=HOUR, end=NOW, regions=["osaka"])
    assert list(one["pool"]) == ["osaka-pool"]


def test_a_missing_hour_is_an_absent_row(world: worlds.World) -> None:
    line = series(world.regions["tokyo"], "gpu_reporting_gpus", pool="a")
    gauge_hour(line, HOUR, 8)
    gauge_hour(line, HOUR + 2 * ONE, 8)
    frame = selectors.hours(signal="gpu_reporting_gpus", start=HOUR, end=NOW)
    assert list(frame["hour"]) == [HOUR, HOUR + 2 * ONE]
    empty = selectors.hours(signal="gpu_reporting_gpus", start=NOW, end=NOW + ONE)
    assert empty.empty
    assert list(empty.columns) == list(frame.columns)


def test_the_newest_version_of_a_query_wins_even_when_it_names_its_series_otherwise(
    world: worlds.World,
) -> None:
    tokyo = world.regions["tokyo"]
    gauge_hour(series(tokyo, "gpu_reporting_gpus", pool=""), HOUR, 99, version="old")
    gauge_hour(series(tokyo, "gpu_reporting_gpus", pool=""), HOUR - ONE, 7, version="old")
    gauge_hour(series(tokyo, "gpu_reporting_gpus", pool="a"), HOUR, 8, version="new")
    frame = selectors.hours(signal="gpu_reporting_gpus", start=HOUR - ONE, end=NOW, by=[])
    assert list(frame["sum_value"] / frame["count"]) == [7, 8]


def test_hours_cost_one_query(
    world: worlds.World, django_assert_num_queries: type[CaptureQueriesContext]
) -> None:
    gauge_hour(series(world.regions["tokyo"], "gpu_reporting_gpus", pool="a"), HOUR, 8)
    with django_assert_num_queries(1):  # type: ignore[arg-type]
        selectors.hours(signal="gpu_reporting_gpus", start=HOUR, end=NOW)


def test_an_unknown_label_is_refused() -> None:
    with pytest.raises(ValueError, match="expected some of"):
        selectors.hours(signal="x", start=HOUR, end=NOW, by=["tenant"])


def test_latest_shows_the_last_good_value_with_its_age(world: worlds.World) -> None:
    tokyo = world.regions["tokyo"]
    for project, used in [("speech", 8.0), ("robotics", 16.0)]:
        line = series(tokyo, "quota_used_gpus", pool="tokyo-a-h100", project=project)
        gauge_hour(line, HOUR - ONE, 1)
        gauge_hour(line, HOUR, used, seen=6)
    frame = selectors.latest(signal="quota_used_gpus", region="tokyo", by=["pool"], now=NOW)
    assert frame.to_dict("records") == [
        {"pool": "tokyo-a-h100", "value": 24.0, "at": HOUR + timedelta(minutes=25)}
    ]
    assert selectors.latest(signal="quota_used_gpus", region="osaka", by=["pool"], now=NOW).empty


def test_latest_does_not_add_a_series_that_ended_to_one_that_goes_on(world: worlds.World) -> None:
    tokyo = world.regions["tokyo"]
    gauge_hour(series(tokyo, "quota_used_gpus", pool="a", project="gone"), HOUR - ONE, 5)
    gauge_hour(series(tokyo, "quota_used_gpus", pool="a", project="here"), HOUR, 8)
    gauge_hour(series(tokyo, "quota_used_gpus", pool="b", project="here"), HOUR - 30 * ONE, 3)
    frame = selectors.latest(signal="quota_used_gpus", region="tokyo", by=["pool"], now=NOW)
    assert frame[["pool", "value"]].to_dict("records") == [{"pool": "a", "value": 8.0}]
    total = selectors.latest(signal="quota_used_gpus", region="tokyo", by=[], now=NOW)
    assert list(total["value"]) == [8.0]


def _watermark(world: worlds.World, signal: str, age: timedelta | None) -> None:
    Watermark.objects.create(
        region=world.regions["tokyo"], signal=signal, version="v1", collected_until=NOW,
        last_sample_at=None if age is None else NOW - age,
    )  # fmt: skip


def test_freshness_says_how_old_each_signal_is(world: worlds.World) -> None:
    _watermark(world, "a", timedelta(minutes=10))
    _watermark(world, "b", timedelta(minutes=40))
    _watermark(world, "c", timedelta(hours=5))
    _watermark(world, "d", None)
    run = CollectionRun.objects.create(
        region=world.regions["tokyo"], asked_by="schedule", source="x", state=RunState.PARTIAL,
        started_at=NOW,
    )  # fmt: skip
    for signal, state, error in [("c", "failed", "No answer."), ("a", "complete", "")]:
        SignalFetch.objects.create(
            run=run, signal=signal, version="v1", query="x", asked_from=HOUR, asked_to=NOW,
            state=state, error=error, duration_seconds=0,
        )  # fmt: skip
    frame = selectors.freshness(region="tokyo", now=NOW).set_index("signal")
    assert frame["state"].to_dict() == {"a": "live", "b": "late", "c": "stale", "d": "never"}
    assert frame["error"].to_dict() == {"a": "", "b": "", "c": "No answer.", "d": ""}
    assert frame.loc["a", "age_seconds"] == 600
    assert selectors.freshness(region="osaka", now=NOW).empty


def test_coverage_counts_missing_hours_as_not_observed(world: worlds.World) -> None:
    tokyo = world.regions["tokyo"]
    assert selectors.coverage(region="tokyo", start=HOUR, end=NOW) is None
    _watermark(world, "gpu_reporting_gpus", timedelta(hours=9))
    assert selectors.coverage(region="tokyo", start=HOUR, end=NOW) == 0.0
    for pool in ("a", "b"):
        line = series(tokyo, "gpu_reporting_gpus", pool=pool)
        gauge_hour(line, HOUR, 8)
        gauge_hour(line, HOUR + ONE, 8, seen=6)
    assert selectors.coverage(region="tokyo", start=HOUR, end=NOW) == pytest.approx(18 / 36)


def test_jobs_are_those_that_touch_the_window(world: worlds.World) -> None:
    worlds.job("before", submit_at=NOW - timedelta(days=9))
    worlds.job("inside", submit_at=NOW - timedelta(hours=5))
    worlds.job("running", submit_at=NOW - timedelta(days=9), run=None)
    worlds.job("after", submit_at=NOW)
    frame = selectors.jobs(start=NOW - timedelta(days=1), end=NOW)
    assert list(frame["job_id"]) == ["running", "inside"]
    assert str(frame["submit_at"].dt.tz) == "UTC"
    assert selectors.jobs(start=NOW - timedelta(days=1), end=NOW, projects=["vision"]).empty


def test_jobs_of_a_region_ran_there_or_may_run_there(world: worlds.World) -> None:
    worlds.job("tokyo")
    worlds.job("osaka", pool="osaka-a-a100")
    worlds.job("anywhere", wait=None)
    pinned = worlds.job("pinned", wait=None)
    pinned.pools = ["tokyo-a-h100"]
    pinned.save()
    frame = selectors.jobs(start=NOW - timedelta(days=7), end=NOW, regions=["osaka"])
    assert sorted(frame["job_id"]) == ["anywhere", "osaka"]


def test_attempts_carry_their_job(world: worlds.World) -> None:
    worlds.job("one", gpus=16)
    worlds.job("waiting", wait=None)
    frame = selectors.attempts(start=NOW - timedelta(days=7), end=NOW)
    row = frame.iloc[0]
    assert len(frame) == 1
    assert (row["job_id"], row["project"], row["lane"], row["gpus"]) == (
        "one", "speech", "primary", 16,
    )  # fmt: skip
    assert selectors.attempts(start=NOW, end=NOW + ONE).empty
    assert selectors.attempts(start=NOW - timedelta(days=7), end=NOW, pools=["other"]).empty


def test_job_records_say_until_when_they_are_true(world: worlds.World) -> None:
    assert selectors.known_until() is None
    worlds.job("one")
    assert selectors.known_until() == NOW


def test_a_silent_hour_of_a_histogram_is_known_and_has_no_quantile(world: worlds.World) -> None:
    line = series(world.regions["tokyo"], "checkpoint_write_seconds", storage="tokyo-ckpt")
    histogram_hour(line, HOUR, {"10": 0.0, "20": 0.0, "+Inf": 0.0}, 0)
    histogram_hour(line, HOUR + ONE, {"10": 1.0, "20": 2.0, "+Inf": 2.0}, 25)
    frame = selectors.hours(signal="checkpoint_write_seconds", start=HOUR, end=NOW, by=())
    silent, busy = frame.to_dict("records")
    assert (silent["count"], silent["sum_value"]) == (0, 0)
    assert selectors.quantile(silent["buckets"], 0.95) is None
    assert busy["buckets"] == {"10": 1.0, "20": 2.0, "+Inf": 2.0}


def test_job_records_can_be_read_with_only_the_columns_asked_for(world: worlds.World) -> None:
    jobs = selectors.jobs(start=HOUR, end=NOW, regions=["tokyo"], columns=["job_id", "submit_at"])
    attempts = selectors.attempts(start=HOUR, end=NOW, columns=["job_id", "lost_gpu_seconds"])
    assert list(jobs.columns) == ["job_id", "submit_at"]
    assert list(attempts.columns) == ["job_id", "lost_gpu_seconds"]


def test_hours_of_two_sets_of_bounds_keep_the_bounds_they_share(world: worlds.World) -> None:
    of = {"project": "speech", "lane": "primary"}
    coarse = series(world.regions["tokyo"], "wait_seconds", **of)
    fine = series(world.regions["osaka"], "wait_seconds", **of)
    histogram_hour(coarse, HOUR, {"10240": 5.0, "+Inf": 7.0}, 90_000)
    histogram_hour(fine, HOUR, {"10240": 5.0, "20480": 6.0, "+Inf": 7.0}, 60_000)
    found = selectors.hours(signal="wait_seconds", start=HOUR, end=HOUR + ONE, by=["project"])
    assert found["buckets"].iloc[0] == {"10240": 10.0, "+Inf": 14.0}
    apart = selectors.hours(signal="wait_seconds", start=HOUR, end=HOUR + ONE, by=["region"])
    assert apart["buckets"].iloc[0] == {"10240": 5.0, "20480": 6.0, "+Inf": 7.0}
