from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from planner import simulate
from planner.scenario import content_hash, diff, parse, to_mapping
from portal.plans import scenarios
from portal.policy.models import (
    CheckpointRule,
    LaneAssignment,
    LaneAssignmentPool,
    LaneRank,
    PreemptionRight,
    Quota,
)
from portal.telemetry.models import ImportBatch, JobRecord
from tests import worlds
from tests.worlds import EPOCH, NOW, World

DAY = timedelta(days=1)
MIDNIGHT = datetime(2026, 11, 29, 15, 0, tzinfo=UTC)  # 30 November, 00:00 in Tokyo


def test_what_is_in_force_becomes_a_scenario_that_the_planner_accepts(world: World) -> None:
    scenario = scenarios.in_force(at=NOW, start=MIDNIGHT)

    assert parse(to_mapping(scenario)) == scenario
    assert [lane.name for lane in scenario.lanes] == list(world.lanes)
    emergency = scenario.lanes[0]
    assert (emergency.rank, emergency.preempts) == (100, ("exploratory", "background"))
    assert (emergency.protect_seconds, emergency.recovery) == (300, "requeue")
    assert {(row.project, row.pool): row.nominal for row in scenario.quotas} == {
        ("speech", "tokyo-a-h100"): 24,
        ("vision", "tokyo-a-h100"): 16,
        ("robotics", "tokyo-a-h100"): 24,
        ("robotics", "osaka-a-a100"): 32,
    }
    assert (scenario.policy.order, scenario.policy.reclaim) == ("fair-share", "any")
    assert scenario.links[0].gbps == 40
    assert scenario.storages[0].domain == "tokyo-a"


def test_the_scenario_is_that_of_the_instant_asked_for(world: World) -> None:
    key = {"project": world.projects["speech"], "pool": world.pools["tokyo-a-h100"]}
    Quota.objects.create(**key, nominal_gpus=40, borrowing_limit_gpus=16, starts_at=NOW + DAY)

    today, tomorrow = (scenarios.in_force(at=at, start=MIDNIGHT) for at in (NOW, NOW + DAY))

    [change] = diff(today, tomorrow)
    assert (change.path, change.before, change.after) == (
        "quota[speech, tokyo-a-h100].nominal", 24, 40,
    )  # fmt: skip


def test_a_withdrawn_lane_takes_its_assignments_and_rights_with_it(world: World) -> None:
    LaneRank.objects.create(lane=world.lanes["background"], rank=10, starts_at=NOW, withdrawn=True)

    scenario = scenarios.in_force(at=NOW, start=MIDNIGHT)

    assert parse(to_mapping(scenario)) == scenario
    assert "background" not in {lane.name for lane in scenario.lanes}
    assert "background" not in {row.lane for row in scenario.assignments}
    assert scenario.lanes[0].preempts == ("exploratory",)


def test_a_right_over_a_lane_that_does_not_rank_lower_is_left_out(world: World) -> None:
    PreemptionRight.objects.create(
        lane=world.lanes["background"], over=world.lanes["primary"], starts_at=NOW
    )
    scenario = scenarios.in_force(at=NOW, start=MIDNIGHT)

    assert parse(to_mapping(scenario)) == scenario
    assert scenario.lanes[-1].preempts == ()


def test_an_assignment_keeps_its_pools_in_their_order_and_its_limit(world: World) -> None:
    row = LaneAssignment.objects.create(
        project=world.projects["robotics"], lane=world.lanes["emergency"], max_gpus=8,
        starts_at=EPOCH,
    )  # fmt: skip
    for position, pool in enumerate(["osaka-a-a100", "tokyo-a-h100"]):
        LaneAssignmentPool.objects.create(assignment=row, pool=world.pools[pool], position=position)

    scenario = scenarios.in_force(at=NOW, start=MIDNIGHT)

    found = {(row.project, row.lane): row for row in scenario.assignments}
    assert found["robotics", "emergency"].pools == ("osaka-a-a100", "tokyo-a-h100")
    assert found["robotics", "emergency"].max_gpus == 8
    assert found["robotics", "primary"].pools is None


def test_an_empty_site_is_a_valid_scenario_too(db: None) -> None:
    scenario = scenarios.in_force(at=NOW, start=MIDNIGHT)
    assert parse(to_mapping(scenario)) == scenario


def test_another_quota_changes_nothing_else(world: World) -> None:
    base = scenarios.in_force(at=NOW, start=MIDNIGHT)
    more = scenarios.with_quota(
        base, project="vision", pool="tokyo-a-h100", nominal_gpus=32, name="more"
    )
    first = scenarios.with_quota(
        base, project="vision", pool="osaka-a-a100", nominal_gpus=8, name="first"
    )

    assert [(c.dimension, c.before, c.after) for c in diff(base, more)] == [("quota", 16, 32)]
    kept = next(row for row in more.quotas if row.project == "vision")
    assert kept.lending_limit == 8
    assert [c.path for c in diff(base, first)] == ["quota[vision, osaka-a-a100]"]
    assert parse(to_mapping(first)) == first


def test_observed_work_is_whole_days_of_the_reports_zone(world: World) -> None:
    worlds.job("before", submit_at=MIDNIGHT - 28 * DAY - timedelta(seconds=1))
    worlds.job("first", submit_at=MIDNIGHT - 28 * DAY)
    worlds.job("last", submit_at=MIDNIGHT - timedelta(seconds=1))
    worlds.job("today", submit_at=MIDNIGHT)

    work = scenarios.observed_work(until=NOW)

    assert [job.id for job in work.jobs] == ["test/first", "test/last"]
    assert [job.submit_seconds for job in work.jobs] == [0, 28 * 86_400 - 1]
    assert (work.observed_from, work.observed_to) == (MIDNIGHT - 28 * DAY, MIDNIGHT)
    assert work.left_out == 0


def test_days_that_nobody_recorded_are_not_days_without_work(world: World) -> None:
    worlds.job("first", submit_at=MIDNIGHT - 5 * DAY + timedelta(hours=3))
    ImportBatch.objects.update(known_until=MIDNIGHT - timedelta(hours=1))

    work = scenarios.observed_work(until=NOW)

    assert (work.observed_from, work.observed_to) == (MIDNIGHT - 5 * DAY, MIDNIGHT - DAY)


def test_where_a_job_says_nothing_its_projects_checkpoint_rule_counts(world: World) -> None:
    CheckpointRule.objects.create(
        project=world.projects["speech"], interval_seconds=900, checkpoint_gb=Decimal("50.5"),
        restart_seconds=60, starts_at=NOW,
    )  # fmt: skip
    worlds.job("silent", submit_at=MIDNIGHT - DAY)
    spoken = worlds.job("spoken", submit_at=MIDNIGHT - DAY)
    spoken.checkpoint_interval_seconds, spoken.checkpoint_gb = 3600, Decimal("7")
    spoken.restart_seconds = 10
    spoken.save()

    jobs = {job.id: job for job in scenarios.observed_work(until=NOW).jobs}

    silent, said = jobs["test/silent"], jobs["test/spoken"]
    assert (silent.checkpoint_interval_seconds, silent.checkpoint_gb, silent.restart_seconds) == (
        900, Decimal("50.5"), 60,
    )  # fmt: skip
    assert (said.checkpoint_interval_seconds, said.checkpoint_gb, said.restart_seconds) == (
        3600, Decimal(7), 10,
    )  # fmt: skip


@pytest.mark.parametrize(
    "lost",
    [
        {"project": "gone"},
        {"lane": "urgent"},
        {"pools": ["gone"]},
        {"regions": ["kyoto"]},
        {"data_region": "kyoto"},
    ],
)
def test_jobs_that_name_what_is_no_longer_there_are_left_out_and_counted(
    world: World, lost: dict[str, object]
) -> None:
    worlds.job("kept", submit_at=MIDNIGHT - DAY)
    worlds.job("lost", submit_at=MIDNIGHT - DAY)
    JobRecord.objects.filter(job_id="lost").update(**lost)

    work = scenarios.observed_work(until=NOW)

    assert [job.id for job in work.jobs] == ["test/kept"]
    assert work.left_out == 1


def test_a_job_keeps_the_pools_that_are_still_there(world: World) -> None:
    worlds.job("some", submit_at=MIDNIGHT - DAY)
    JobRecord.objects.update(
        pools=["gone", "tokyo-a-h100"], regions=["tokyo", "osaka"], data_region="osaka",
        data_gb=Decimal("12.5"), accelerator="H100", limit_seconds=9000,
    )  # fmt: skip

    [job] = scenarios.observed_work(until=NOW).jobs

    assert (job.pools, job.regions) == (("tokyo-a-h100",), ("tokyo", "osaka"))
    assert (job.data_region, job.data_gb) == ("osaka", Decimal("12.5"))
    assert (job.accelerator, job.limit_seconds) == ("H100", 9000)


def test_freezing_and_thawing_gives_the_same_scenario_and_the_same_run(world: World) -> None:
    for number in range(5):
        worlds.job(f"job-{number}", submit_at=MIDNIGHT - DAY + timedelta(minutes=number))
    work = scenarios.observed_work(until=NOW)
    base = scenarios.in_force(at=NOW, start=work.observed_from)
    frozen = scenarios.freeze_jobs(work.jobs, start=work.observed_from)

    thawed = scenarios.thaw(to_mapping(base), frozen)

    whole = scenarios.in_force(at=NOW, start=work.observed_from, jobs=work.jobs)
    assert thawed == whole
    assert content_hash(thawed) == content_hash(whole)
    assert frozen == scenarios.freeze_jobs(work.jobs, start=work.observed_from)
    assert set(simulate(thawed).jobs["state"]) == {"finished"}
