"""The story is the planner's own, agrees with itself, and keeps its beginning when told further."""

from dataclasses import replace
from datetime import timedelta

import pandas as pd
import pytest

from planner import simulate
from planner.scenario import read
from portal.demo import story
from tests.portal.demo.conftest import FIRST_DAY, NOW

PARTS = ["useful", "lost", "checkpoint", "restart", "staging"]


@pytest.fixture(scope="module")
def stopped_now(told: story.Story) -> pd.DataFrame:
    """What the engine itself says when the same work stops at NOW."""
    scenario = replace(told.trace.scenario, horizon_seconds=told.seconds(NOW))
    trace = simulate(scenario)
    return trace.jobs.merge(
        trace.attempts.groupby("job")["attempt"].count().rename("begun"),
        left_on="id",
        right_index=True,
        how="left",
    )


def test_the_world_is_as_promised() -> None:
    world = read(story.WORLD)
    assert (len(world.regions), len(world.domains), len(world.pools)) == (2, 3, 6)
    assert (len(world.tenants), len(world.projects), len(world.lanes)) == (6, 14, 4)
    assert sum(pool.premium for pool in world.pools) == 2
    assert sum(pool.purpose == "serving" for pool in world.pools) == 1


def test_the_story_starts_on_a_monday_in_tokyo_nine_weeks_before(told: story.Story) -> None:
    start = told.start.astimezone(story.JST)
    assert (start.weekday(), start.hour, start.minute) == (0, 0, 0)
    assert timedelta(weeks=9) <= NOW - told.start < timedelta(weeks=10)
    assert told.end > NOW + timedelta(days=1)


def test_records_at_now_are_what_the_engine_says_when_it_stops_now(
    told: story.Story, stopped_now: pd.DataFrame
) -> None:
    jobs, attempts = story.records(told, now=NOW)
    both = jobs.merge(stopped_now, left_on="job_id", right_on="id", suffixes=("", "_engine"))

    assert len(both) == len(jobs) > 4000
    for column in ("state", "pool", "total_wait_seconds", "preemptions"):
        theirs = both[f"{column}_engine"].fillna("" if column == "pool" else 0)
        assert (both[column] == theirs).all(), column
    assert (both["attempts_count"] == both["begun"].fillna(0)).all()
    spent = attempts.groupby("job_id")[[f"{part}_gpu_seconds" for part in PARTS]].sum()
    engine = stopped_now.set_index("id").loc[spent.index, spent.columns]
    assert (spent == engine).all(axis=None)


def test_a_waiting_job_says_why(told: story.Story) -> None:
    jobs, _attempts = story.records(told, now=NOW)
    waiting = jobs[jobs["state"] == "waiting"]
    assert len(waiting) > 0
    assert (waiting["reason"] != "").all()
    assert (jobs.loc[jobs["state"] != "waiting", "reason"] == "").all()


def test_told_further_the_story_has_the_same_beginning(told: story.Story) -> None:
    later = story.tell(first_day=FIRST_DAY, now=NOW + timedelta(days=3))
    over = told.trace.jobs["end_seconds"] < told.seconds(NOW)
    before = told.trace.jobs[over].set_index("id")
    after = later.trace.jobs.set_index("id").loc[before.index]
    pd.testing.assert_frame_equal(before, after)
    assert (told.stall, told.outage) == (later.stall, later.outage)


def test_only_what_went_on_since_is_told_again(told: story.Story) -> None:
    since = NOW - timedelta(minutes=30)
    jobs, attempts = story.records(told, now=NOW, since=since)
    everything, _all = story.records(told, now=NOW)
    assert 0 < len(jobs) < len(everything) / 10
    assert set(attempts["job_id"]) <= set(jobs["job_id"])
    quiet = everything[~everything["job_id"].isin(jobs["job_id"])]
    assert (quiet["end_at"] <= pd.Timestamp(since)).all()


def test_the_outage_evicts_and_the_stall_does_not(told: story.Story) -> None:
    evictions = told.trace.evictions
    out = evictions[evictions["ground"] == "outage"]
    assert len(out) > 0
    assert (out["at_seconds"] == told.seconds(told.outage[0])).all()
    assert told.outage[1] - told.outage[0] == timedelta(hours=6)
    assert NOW - timedelta(days=14) < told.outage[0] < NOW
    assert NOW - timedelta(days=7) < told.stall[0] < NOW
    assert told.stall[0].astimezone(story.JST).hour == 19


def test_a_project_calls_all_urgent_and_one_starves_beside_a_borrower(told: story.Story) -> None:
    jobs = told.trace.jobs
    urgent = jobs[jobs["project"] == "recommend"]
    assert set(urgent["lane"]) == {"emergency", "primary"}
    primary = jobs[jobs["lane"] == "primary"]
    waits = primary.groupby("project")["total_wait_seconds"].quantile(0.9)
    assert waits["weather"] > 12 * 3600
    assert waits["weather"] > 2 * waits["driving"]
