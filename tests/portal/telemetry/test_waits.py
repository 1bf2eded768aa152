from datetime import timedelta

import pytest

from portal.telemetry import selectors, waits
from portal.telemetry.models import JobState
from tests import worlds
from tests.worlds import NOW

DAY = timedelta(days=1)


def test_jobs_still_waiting_count_with_their_age(world: worlds.World) -> None:
    worlds.job("short", wait=timedelta(minutes=10))
    worlds.job("starved", wait=None, submit_at=NOW - timedelta(hours=30))
    frame = selectors.jobs(start=NOW - 7 * DAY, end=NOW)
    row = waits.summary(frame, by=["lane"], as_of=NOW).iloc[0]
    assert (row["lane"], row["jobs"], row["waiting"], row["at_least"]) == ("primary", 2, 1, True)
    assert row["longest_seconds"] == 30 * 3600
    assert row["p50_seconds"] == pytest.approx((600 + 30 * 3600) / 2)


def test_a_job_that_started_later_was_waiting_then(world: worlds.World) -> None:
    worlds.job("late", submit_at=NOW - 2 * DAY, wait=DAY)
    frame = selectors.jobs(start=NOW - 7 * DAY, end=NOW)
    then = waits.summary(frame, by=[], as_of=NOW - 2 * DAY + timedelta(hours=1)).iloc[0]
    assert (then["waiting"], then["longest_seconds"]) == (1, 3600)
    now = waits.summary(frame, by=[], as_of=NOW).iloc[0]
    assert (now["waiting"], now["longest_seconds"], now["at_least"]) == (0, 86400, False)


def test_a_job_submitted_later_or_that_can_never_run_does_not_wait(world: worlds.World) -> None:
    worlds.job("future", submit_at=NOW, wait=None)
    never = worlds.job("never", wait=None)
    never.state = JobState.UNSCHEDULABLE
    never.save()
    frame = selectors.jobs(start=NOW - 7 * DAY, end=NOW + DAY)
    assert len(frame) == 2
    assert waits.summary(frame, by=["lane"], as_of=NOW - timedelta(hours=1)).empty


def test_a_job_cancelled_in_the_queue_counts_with_what_it_endured(world: worlds.World) -> None:
    gone = worlds.job("gone", wait=None, submit_at=NOW - DAY)
    gone.state, gone.end_at = JobState.CANCELLED, NOW - timedelta(hours=20)
    gone.save()
    frame = selectors.jobs(start=NOW - 7 * DAY, end=NOW)
    row = waits.summary(frame, by=["project"], as_of=NOW).iloc[0]
    assert (row["waiting"], row["longest_seconds"]) == (0, 4 * 3600)


def test_an_empty_frame_gives_an_empty_summary(world: worlds.World) -> None:
    frame = selectors.jobs(start=NOW - DAY, end=NOW)
    summary = waits.summary(frame, by=["lane", "project"], as_of=NOW)
    assert summary.empty
    assert list(summary.columns[:4]) == ["lane", "project", "jobs", "waiting"]
