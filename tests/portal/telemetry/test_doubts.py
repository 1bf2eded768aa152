"""Figures that cannot all be true are found, keep their beginning, and go when they agree again."""

from datetime import UTC, datetime, timedelta

import pytest

from portal.fleet.models import Region
from portal.telemetry import doubts
from portal.telemetry.models import Doubt, DoubtKind, HourRollup, ImportBatch, JobRecord
from tests import worlds
from tests.portal.telemetry.rows import counter_hour, gauge_hour, series
from tests.worlds import World

NOW = datetime(2026, 11, 30, 3, 58, tzinfo=UTC)
HOUR = datetime(2026, 11, 30, 3, 0, tzinfo=UTC)  # its newest sample is of 03:55


@pytest.fixture
def tokyo(world: World) -> Region:
    """tokyo-a-h100 has 8 nodes of 8: 64 GPUs."""
    return world.regions["tokyo"]


def judged(region: Region, now: datetime = NOW) -> set[tuple[str, str, float, float]]:
    return {
        (doubt.kind, doubt.subject, doubt.found, doubt.against)
        for doubt in doubts.judge(region=region, now=now)
    }


def test_more_held_or_seen_than_installed_is_a_doubt(tokyo: Region) -> None:
    for project, held in (("speech", 40), ("robotics", 30)):
        gauge_hour(
            series(tokyo, "quota_used_gpus", pool="tokyo-a-h100", project=project), HOUR, held
        )
    gauge_hour(series(tokyo, "gpu_reporting_gpus", pool="tokyo-a-h100"), HOUR, 65)
    gauge_hour(series(tokyo, "gpu_reporting_gpus", pool="tokyo-b-serve"), HOUR, 16)
    assert judged(tokyo) == {
        (DoubtKind.HELD_OVER_INSTALLED, "tokyo-a-h100", 70, 64),
        (DoubtKind.SEEN_OVER_INSTALLED, "tokyo-a-h100", 65, 64),
    }


def test_a_pool_that_nobody_entered_is_no_contradiction(tokyo: Region) -> None:
    gauge_hour(series(tokyo, "quota_used_gpus", pool="elsewhere", project="speech"), HOUR, 500)
    assert judged(tokyo) == set()


def test_what_is_old_contradicts_nothing(tokyo: Region) -> None:
    gauge_hour(series(tokyo, "quota_used_gpus", pool="tokyo-a-h100", project="speech"), HOUR, 70)
    assert judged(tokyo, NOW + timedelta(hours=1)) == set()


def test_a_doubt_keeps_its_beginning_and_goes_when_the_figures_agree(tokyo: Region) -> None:
    gauge_hour(series(tokyo, "quota_used_gpus", pool="tokyo-a-h100", project="speech"), HOUR, 70)
    doubts.judge(region=tokyo, now=NOW)
    HourRollup.objects.update(last_value=66)
    doubts.judge(region=tokyo, now=NOW + timedelta(minutes=5))
    doubt = Doubt.objects.get()
    assert (doubt.since, doubt.found) == (NOW, 66)
    HourRollup.objects.update(last_value=64)
    assert judged(tokyo) == set()
    assert not Doubt.objects.exists()


def still(region: Region, *, pending: float = 5, admitted: float = 0) -> None:
    for hours_ago in range(25):
        hour = HOUR - timedelta(hours=hours_ago)
        gauge_hour(series(region, "pending_jobs", project="speech", detail="active"), hour, pending)
        counter_hour(series(region, "admitted_jobs", project="speech"), hour, admitted)


def test_a_queue_that_stands_still_for_a_day_is_a_doubt(tokyo: Region) -> None:
    still(tokyo)
    assert judged(tokyo) == {(DoubtKind.QUEUE_STANDS_STILL, "speech", 5, 0)}


@pytest.mark.parametrize("what", ["admits", "empty", "arrives", "changes", "short"])
def test_a_queue_that_moves_is_none(tokyo: Region, what: str) -> None:
    still(tokyo, pending=0 if what == "empty" else 5, admitted=0.1 if what == "admits" else 0)
    if what == "arrives":
        worlds.job("new", submit_at=NOW - timedelta(hours=2), wait=None)
    if what == "changes":
        HourRollup.objects.filter(series__signal="pending_jobs", hour=HOUR).update(max_value=6)
    if what == "short":
        HourRollup.objects.filter(hour__lte=HOUR - timedelta(hours=20)).delete()
    assert judged(tokyo) == set()


def test_scheduler_and_job_records_that_differ_are_a_doubt(tokyo: Region) -> None:
    gauge_hour(series(tokyo, "quota_used_gpus", pool="tokyo-a-h100", project="speech"), HOUR, 32)
    worlds.job("a", gpus=16, submit_at=NOW - timedelta(hours=3), run=None)
    ImportBatch.objects.update(known_until=NOW - timedelta(minutes=5))
    # 32 held against 16 recorded: 16 apart, more than the 8 that different instants explain.
    assert judged(tokyo) == {(DoubtKind.HELD_AGAINST_RECORDS, "tokyo-a-h100", 32, 16)}
    JobRecord.objects.update(gpus=24)
    assert judged(tokyo) == set()
    JobRecord.objects.update(gpus=16)
    ImportBatch.objects.update(known_until=NOW - timedelta(hours=1))
    assert judged(tokyo) == set()  # the records are older than the figure


def test_a_clock_that_is_off_is_a_doubt(tokyo: Region) -> None:
    gauge_hour(series(tokyo, "clock_offset_seconds"), HOUR, 3.5)
    assert judged(tokyo) == {(DoubtKind.CLOCK_OFF, "", 3.5, 1)}
